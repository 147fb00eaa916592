"""The producer against a broker: records arrive as they were sent, and the future has their offsets."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import odradek
from client.reading import read_back
from odradek import Producer
from odradek.client import broker_errors
from odradek.client.errors import ClientClosed, ClientForked, DeadlineExceeded
from odradek.client.producer.batches.batch import RecordMetadata
from odradek.client.producer.batches.partitioners import RoundRobinPartitioner
from odradek.client.producer.batches.record_preparation import Interceptor, ProducerRecord
from odradek.client.producer.errors import BufferExhausted, RecordTooLarge, SerializationFailed
from odradek.common.errors import ConfigError, KafkaError
from odradek.records.kernels.hashes import murmur2, to_positive
from odradek.testing import Cluster


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[Producer[bytes, bytes]]:
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        yield producer


def test_a_record_arrives_whole_and_the_future_reports_where(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    future = producer.send(
        topic, b"value", key=b"key", partition=1, headers=[("a", b"1"), ("b", None)], timestamp=1234567890123
    )

    assert future.result(20) == RecordMetadata(topic, 1, 0, 1234567890123)
    (record,) = read_back(cluster, topic)[1]
    assert (record.key, record.value, record.timestamp_ms) == (b"key", b"value", 1234567890123)
    assert record.headers == (("a", b"1"), ("b", None))


def test_records_of_one_partition_keep_their_order(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(5000)]

    assert producer.flush(60)
    assert [future.result(0).offset for future in futures] == list(range(5000))
    assert [record.value for record in read_back(cluster, topic)[0]] == [b"%d" % n for n in range(5000)]


def test_without_linger_a_lone_record_is_sent_by_the_thread_that_gives_it(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    was_sent = False
    for number in range(0, 30, 3):  # a question about metadata may be on its way, and the record waits for it
        producer.send(topic, b"first", partition=0).result(20)
        is_busy, may_go_on = threading.Event(), threading.Event()
        producer._background.call_soon(lambda: (is_busy.set(), may_go_on.wait(30)))  # noqa: B023
        is_busy.wait(20)

        lone = producer.send(topic, b"lone", partition=0)
        behind = producer.send(topic, b"behind", partition=0)
        deadline = time.monotonic() + 1
        while not was_sent and time.monotonic() < deadline:
            was_sent = len(read_back(cluster, topic)[0]) == number + 2
        assert not lone.done()
        may_go_on.set()
        assert (lone.result(20).offset, behind.result(20).offset) == (number + 1, number + 2)
        if was_sent:
            break

    assert was_sent


@pytest.mark.parametrize("acks", ["all", 1])
def test_threads_that_wait_for_each_record_keep_their_order(cluster: Cluster, topic: str, acks: Any) -> None:
    reported: dict[int, list[tuple[int, int]]] = {}

    def work(number: int) -> None:
        # Only one thread sends to each partition, so that offsets show the order of sending.
        futures = [producer.send(topic, b"%d" % n, partition=number) for n in range(3)]
        for n in range(3, 150):
            futures.append(producer.send(topic, b"%d" % n, partition=number))
            if n % 10:
                futures[-1].result(20)
        reported[number] = [(int(n), future.result(20).offset) for n, future in enumerate(futures)]

    # Metadata is asked for all the time, on the connection that records take.
    with Producer(
        bootstrap_servers=cluster.bootstrap, linger_ms=0, acks=acks, metadata_max_age_ms=1
    ) as producer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert reported == {number: [(n, n) for n in range(150)] for number in range(3)}


class Litter:
    """Garbage whose collection runs Python code, during which another thread may get its turn."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        time.sleep(0)


def test_a_garbage_collection_in_the_middle_of_a_send_spoils_no_batch(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        futures = []
        for number in range(3000):
            Litter()
            futures.append(producer.send(topic, b"%d" % number, partition=0))
    finally:
        gc.set_threshold(*thresholds)

    assert [future.result(60).offset for future in futures] == list(range(3000))
    assert [record.value for record in read_back(cluster, topic)[0]] == [b"%d" % n for n in range(3000)]


def test_nulls_are_nulls_and_empty_is_empty(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    producer.send(topic, None, key=b"gone", partition=0)
    producer.send(topic, b"", key=b"", partition=0)
    producer.flush(20)

    assert [(one.key, one.value) for one in read_back(cluster, topic)[0]] == [(b"gone", None), (b"", b"")]


def test_a_key_goes_where_java_would_send_it(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    for number in range(100):
        producer.send(topic, b"v", key=b"key %d" % number)
    producer.flush(20)

    for partition, records in read_back(cluster, topic).items():
        assert all(to_positive(murmur2(record.key or b"")) % 3 == partition for record in records)


def test_records_without_key_reach_every_partition(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=500) as producer:
        for _ in range(2000):
            producer.send(topic, b"v" * 50)

    counts = [len(records) for records in read_back(cluster, topic).values()]
    assert sum(counts) == 2000
    assert min(counts) > 200, "a full batch each, in turn by chance"


def test_round_robin_deals_in_turn(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, partitioner=RoundRobinPartitioner()) as producer:
        for _ in range(9):
            producer.send(topic, b"v", key=b"same")

    assert [len(records) for records in read_back(cluster, topic).values()] == [3, 3, 3]


def test_a_users_partitioner_decides(cluster: Cluster, topic: str) -> None:
    with Producer(
        bootstrap_servers=cluster.bootstrap, partitioner=lambda topic, key, value, count, available: count - 1
    ) as producer:
        assert producer.send(topic, b"v").result(20).partition == 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_arrives(cluster: Cluster, topic: str, codec: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, compression_type=codec) as producer:
        for number in range(200):
            producer.send(topic, b"value %d" % number * 10, partition=0)

    values = [record.value for record in read_back(cluster, topic)[0]]
    assert values == [b"value %d" % number * 10 for number in range(200)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_arrives(cluster: Cluster, topic: str, acks: Any) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, acks=acks) as producer:
        future = producer.send(topic, b"v", partition=0)
        assert future.result(20).offset == (-1 if acks == 0 else 0)
        producer.send(topic, b"w", partition=0).result(20)

    with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        producer.send(topic, b"last", partition=0).result(20)  # with acks=0 there is no response to wait for
    assert {b"v", b"w"} <= {record.value for record in read_back(cluster, topic)[0]}


def test_serializers_make_bytes_of_anything(cluster: Cluster, topic: str) -> None:
    with Producer(
        bootstrap_servers=cluster.bootstrap,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode(),
    ) as producer:
        producer.send(topic, {"a": 1}, key="k", partition=0).result(20)

    (record,) = read_back(cluster, topic)[0]
    assert (record.key, record.value) == (b"k", b'{"a": 1}')


def test_a_serializer_that_raises_is_named_and_nothing_is_sent(cluster: Cluster, topic: str) -> None:
    def broken(value: object) -> bytes:
        raise RuntimeError("no idea")

    with Producer(bootstrap_servers=cluster.bootstrap, value_serializer=broken) as producer:
        with pytest.raises(SerializationFailed, match="value serializer raised RuntimeError: no idea"):
            producer.send(topic, 1)
        assert producer.statistics().records_sent == 0


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"value": "text"}, TypeError, "value is str, not bytes.*value_serializer"),
        ({"value": b"v", "headers": [("a", "text")]}, TypeError, "pair of str and bytes"),
        ({"value": b"v", "partition": -2}, ValueError, "partition -2"),
        ({"value": b"v", "partition": -1}, ValueError, "partition -1"),
        ({"value": b"v", "partition": "0"}, ValueError, "partition '0'"),
        ({"value": b"v", "timestamp": -5}, ValueError, "timestamp -5"),
        ({"value": b"v", "timestamp": 1.5}, ValueError, "timestamp 1.5"),
        ({"value": b"v", "partition": 77}, broker_errors.UnknownTopicOrPartition, "3 partitions, and no 77"),
    ],
)
def test_a_wrong_record_is_refused_at_once(
    producer: Producer[bytes, bytes], topic: str, arguments: Any, error: type[Exception], sentence: str
) -> None:
    producer.send("wrong-records", b"a right one first, so that the short way is open")
    with pytest.raises(error, match=sentence):
        producer.send("wrong-records", **arguments)


def test_a_topic_name_that_cannot_be_is_refused(producer: Producer[bytes, bytes]) -> None:
    with pytest.raises(KafkaError, match=r"\.\./x"):
        producer.send("../x", b"v")


def test_a_record_larger_than_a_request_is_refused(producer: Producer[bytes, bytes], topic: str) -> None:
    with pytest.raises(RecordTooLarge, match="max_request_size allows 1048576"):
        producer.send(topic, b"x" * 2_000_000)


def test_large_records_one_by_one_leave_the_connection_whole(
    producer: Producer[bytes, bytes], topic: str
) -> None:
    for number, size in enumerate((10, 900_000, 10, 16_300, 16_500, 900_000)):
        assert producer.send(topic, bytes(size), partition=0).result(20).offset == number
    assert (producer.statistics().retries, producer.statistics().requests_sent) == (0, 6)


def test_a_record_larger_than_a_batch_goes_alone(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str
) -> None:
    sizes = [10, 500_000, 10]
    for size in sizes:
        producer.send(topic, b"x" * size, partition=0)
    producer.flush(20)

    assert [len(record.value or b"") for record in read_back(cluster, topic)[0]] == sizes


def test_a_record_that_the_broker_finds_too_large_fails_alone(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, max_request_size=5_000_000) as producer:
        before = producer.send(topic, b"before", partition=0)
        large = producer.send(topic, b"x" * 2_000_000, partition=0)
        after = producer.send(topic, b"after", partition=0)

        assert before.result(20).offset == 0
        with pytest.raises(broker_errors.MessageTooLarge):
            large.result(20)
        assert after.result(20).offset == 1, "its sequence was lost with the large one, and it got another"


def test_callbacks_report_each_record_and_one_that_raises_does_no_harm(
    producer: Producer[bytes, bytes], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[tuple[BaseException | None, int]] = []

    def on_delivery(error: BaseException | None, metadata: RecordMetadata) -> None:
        reported.append((error, metadata.offset))
        if metadata.offset == 1:
            raise RuntimeError("a user's mistake")

    for _ in range(3):
        producer.send(topic, b"v", partition=0, on_delivery=on_delivery)
    producer.flush(20)

    assert reported == [(None, 0), (None, 1), (None, 2)]
    assert "a user's mistake" in caplog.text


def test_done_callbacks_are_called_once_before_and_after_the_end(
    producer: Producer[bytes, bytes], topic: str
) -> None:
    called = threading.Semaphore(0)
    future = producer.send(topic, b"v")
    future.add_done_callback(lambda done: called.release())
    future.result(20)
    future.add_done_callback(lambda done: called.release())

    assert called.acquire(timeout=20)
    assert called.acquire(timeout=20)
    assert future.done()
    assert future.exception(0) is None


class Stamping(Interceptor[bytes, bytes]):
    def __init__(self) -> None:
        self.ends: list[int] = []

    def on_send(self, record: ProducerRecord[bytes, bytes]) -> ProducerRecord[bytes, bytes]:
        return ProducerRecord(record.topic, b"[" + (record.value or b"") + b"]", partition=0)

    def on_acknowledgement(self, error: BaseException | None, metadata: RecordMetadata) -> None:
        self.ends.append(metadata.offset)


def test_interceptors_may_change_a_record_and_are_called_at_its_acknowledgement(
    cluster: Cluster, topic: str
) -> None:
    stamping = Stamping()
    with Producer(bootstrap_servers=cluster.bootstrap, interceptors=[stamping]) as producer:
        producer.send(topic, b"v").result(20)

    assert read_back(cluster, topic)[0][0].value == b"[v]"
    assert stamping.ends == [0]


def test_threads_may_share_a_producer(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:

        def send_many(name: int) -> None:
            for number in range(2000):
                producer.send(topic, b"%d %d" % (name, number), partition=0)

        threads = [threading.Thread(target=send_many, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    values = [(record.value or b"").split() for record in read_back(cluster, topic)[0]]
    for name in range(4):
        assert [int(number) for who, number in values if int(who) == name] == list(range(2000))


def test_statistics_count(producer: Producer[bytes, bytes], topic: str) -> None:
    for _ in range(10):
        producer.send(topic, b"v")
    producer.flush(20)

    counted = producer.statistics()
    assert (counted.records_sent, counted.records_delivered, counted.records_failed) == (10, 10, 0)
    assert counted.buffered_bytes == 0


def test_a_closed_producer_says_so(cluster: Cluster, topic: str) -> None:
    producer = Producer(bootstrap_servers=cluster.bootstrap)
    future = producer.send(topic, b"v")
    producer.close()
    producer.close()

    assert future.result(0).offset == 0, "close delivers what was given"
    for use in (lambda: producer.send(topic, b"v"), producer.flush, lambda: producer.partitions_for(topic)):
        with pytest.raises(ClientClosed, match="this producer is closed"):
            use()


def test_a_producer_that_was_not_closed_warns(cluster: Cluster) -> None:
    producer = Producer(bootstrap_servers=cluster.bootstrap)
    background, engine = producer._background, producer._engine
    with pytest.warns(ResourceWarning, match="not closed"):
        del producer
    background.close(engine.close(1))


def test_after_a_fork_the_child_gets_an_error_and_never_waits(cluster: Cluster, topic: str) -> None:
    with Producer(
        bootstrap_servers=cluster.bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000
    ) as producer:
        waiting = producer.send(topic, b"v")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            reported = 0
            for use in (lambda: producer.send(topic, b"v"), lambda: waiting.result(10), producer.flush):
                try:
                    use()
                except ClientForked:
                    reported += 1
            os._exit(reported)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        producer.flush(20)
        assert waiting.result(20).offset == 0, "the parent goes on"


def test_an_unknown_topic_is_reported_within_max_block(topic: str) -> None:
    with (
        Cluster(auto_create_topics_enable=False) as cluster,
        Producer(bootstrap_servers=cluster.bootstrap, max_block_ms=300) as producer,
        pytest.raises(DeadlineExceeded, match=f"finding topic {topic} .*300 ms"),
    ):
        producer.send(topic, b"v")


def test_an_unreachable_cluster_is_reported_within_max_block() -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=300) as producer,
        pytest.raises(DeadlineExceeded, match=r"127\.0\.0\.1:1: the connection was refused"),
    ):
        producer.send("t", b"v")


def test_a_wrong_setting_is_refused_before_anything_starts() -> None:
    threads = threading.active_count()
    with pytest.raises(ConfigError, match="did you mean acks"):
        Producer(ackss=1)
    assert threading.active_count() == threads


def test_full_memory_blocks_then_raises_and_the_record_was_not_taken(cluster: Cluster, topic: str) -> None:
    with Producer(
        bootstrap_servers=cluster.bootstrap, buffer_memory=20_000, batch_size=10_000, max_block_ms=1000
    ) as producer:
        producer.partitions_for(topic)
        taken = 0
        background = producer._background
        gate = threading.Event()
        background.call_soon(gate.wait, 20)  # the sender cannot work while it waits here
        try:
            with pytest.raises(BufferExhausted, match="max_block_ms=1000"):  # noqa: PT012
                while True:
                    producer.send(topic, b"x" * 1000, partition=0)
                    taken += 1
        finally:
            gate.set()
    assert len(read_back(cluster, topic)[0]) == taken


def test_memory_comes_back_and_sending_continues(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, buffer_memory=50_000) as producer:
        for _ in range(2000):
            producer.send(topic, b"x" * 1000, partition=0)

    assert len(read_back(cluster, topic)[0]) == 2000


def test_the_name_is_looked_up_at_first_use() -> None:
    assert odradek.Producer is Producer
