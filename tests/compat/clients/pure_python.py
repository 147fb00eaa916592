"""kafka-python, which uses the newest versions, with topic ids."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat.clients.face import PATIENCE_SECONDS, Received, Record, TooLarge, kafka_names

with warnings.catch_warnings():
    # It reads its schemas, as it is imported, by a function that Python 3.11 calls outdated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
    from kafka.errors import MessageSizeTooLargeError


class KafkaPython:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def produce(self, topic: str, records: Sequence[Record], *, codec: str = "none") -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            max_request_size=10_000_000,
            linger_ms=100,
        )
        try:
            sent = [producer.send(topic, partition=0, **_fields(record)) for record in records]
            return [one.get(PATIENCE_SECONDS).offset for one in sent]
        except MessageSizeTooLargeError as error:
            raise TooLarge from error
        finally:
            producer.close(PATIENCE_SECONDS)

    def consume(self, topic: str, count: int, *, start: int | None = 0) -> list[Received]:
        received: list[Received] = []
        with self._consumer(topic) as (consumer, place):
            if start is None:
                consumer.seek_to_beginning(place)
            else:
                consumer.seek(place, start)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(received) < count and time.monotonic() < deadline:
                polled = consumer.poll(timeout_ms=1000, max_records=count - len(received))
                received += [_received(found) for found in polled.get(place, [])]
        return received

    def first_and_next_offset(self, topic: str) -> tuple[int, int]:
        with self._consumer(topic) as (consumer, place):
            first = consumer.beginning_offsets([place])[place]
            return first, consumer.end_offsets([place])[place]

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        with self._consumer(topic) as (consumer, place):
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
            return None if found is None else found.offset

    @contextmanager
    def _consumer(self, topic: str) -> Iterator[tuple[kafka.KafkaConsumer, kafka.TopicPartition]]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
        place = kafka.TopicPartition(topic, 0)
        consumer.assign([place])
        try:
            yield consumer, place
        finally:
            consumer.close()

    def create_topic(self, topic: str, *, partitions: int = 1, **configs: str) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=kafka_names(configs))])

    def topics(self) -> set[str]:
        return set(self.admin.list_topics())

    def partition_count(self, topic: str) -> int:
        (described,) = self.admin.describe_topics([topic])
        assert all(partition["leader_id"] == 0 for partition in described["partitions"])
        return len(described["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions({topic: NewPartitions(total)})

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = kafka.TopicPartition(topic, 0)
        return int(self.admin.delete_records({place: before_offset})[place]["low_watermark"])

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self.admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {key: entry["value"] for key, entry in described.items()}

    def alter_topic_config(self, topic: str, key: str, value: str) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})])

    def broker_ids(self) -> list[int]:
        return sorted(broker["broker_id"] for broker in self.admin.describe_cluster()["brokers"])

    def close(self) -> None:
        self.admin.close()


def _fields(record: Record) -> dict[str, Any]:
    return {
        "value": record.value,
        "key": record.key,
        "headers": list(record.headers),
        "timestamp_ms": record.timestamp_ms,
    }


def _received(found: Any) -> Received:
    record = Record(found.value, found.key, tuple(found.headers), found.timestamp)
    return Received(found.offset, record, found.timestamp_type)
