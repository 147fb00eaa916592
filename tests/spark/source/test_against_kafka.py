"""Both sources on Apache Kafka itself, and the segment source on the directory of that broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from compat.clients.face import CODECS, PATIENCE_SECONDS, Record
from compat.clients.librdkafka import Librdkafka
from spark.reading import both, rows, stream, streamed

RECORDS = [Record(b"value %d" % index, b"key", (("n", None),) * (index % 3)) for index in range(50)]


def transact(bootstrap: str, topic: str, partitions: int) -> None:
    """Three transactions in each partition, of which the second is aborted, and records outside of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_SECONDS)
    for number in range(3):
        producer.begin_transaction()
        for index in range(20):
            producer.produce(topic, b"in %d" % number, partition=index % partitions)
        if number == 1:
            producer.flush(PATIENCE_SECONDS)
            producer.abort_transaction(PATIENCE_SECONDS)
        else:
            producer.commit_transaction(PATIENCE_SECONDS)


@pytest.mark.timeout(900)
def test_all_three_sources_have_the_same_rows(spark, kafka, topic, tmp_path):
    bootstrap, log_directory = kafka
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic, partitions=3)
    for codec in CODECS:
        librdkafka.produce(topic, RECORDS, codec=codec)
    transact(bootstrap, topic, partitions=2)
    librdkafka.delete_records(topic, 60)

    counts = {"read_committed": 190 + 40, "read_uncommitted": 190 + 60}
    for level, count in counts.items():
        options = {"includeHeaders": True, "kafka.isolation.level": level}
        expected = both(spark, bootstrap, topic, minPartitions=5, **options)
        assert len(expected) == count

        if level == "read_committed":
            stream(spark, bootstrap, topic, tmp_path, startingOffsets="earliest", **options)
            assert streamed(spark, tmp_path) == expected

        # Kafka writes the checkpoint of the log's start once a minute: records before it may still be seen.
        files = spark.read.format("odradek-segments").options(isolationLevel=level, subscribe=topic)
        found = rows(files.option("includeHeaders", True).load(str(log_directory)))
        deleted = [row for row in found if row.partition == 0 and row.offset < 60]
        assert found == deleted + expected
