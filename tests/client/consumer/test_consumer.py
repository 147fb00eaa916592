"""The consumer without groups, against a broker: every record once, in order, from where it was told."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek import Consumer, Producer, TopicPartition
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.errors import DeserializationFailed, NoOffset, NotSubscribed
from odradek.client.consumer.fetch.offset_lookup import OffsetAndTimestamp
from odradek.client.errors import ClientClosed, ClientForked
from odradek.common.errors import ConfigError
from odradek.testing import Cluster

Records = list[ConsumerRecord[Any, Any]]


def fill(cluster: Cluster, topic: str, count: int, partition: int = 0, **settings: Any) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, **settings) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition, timestamp=1000 + number)


def read(consumer: Consumer[Any, Any], count: int) -> Records:
    records: Records = []
    deadline = time.monotonic() + 30
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.poll(1)
    return records


def numbers(records: Records) -> list[int]:
    return [int(record.value) for record in records]


@pytest.fixture
def make(cluster: Cluster) -> Iterator[Callable[..., Consumer[Any, Any]]]:
    made: list[Consumer[Any, Any]] = []

    def making(topic: str | None = None, partitions: int = 1, **settings: Any) -> Consumer[Any, Any]:
        settings = {"auto_offset_reset": "earliest", "bootstrap_servers": cluster.bootstrap, **settings}
        made.append(Consumer(**settings))
        if topic is not None:
            made[-1].assign([TopicPartition(topic, number) for number in range(partitions)])
        return made[-1]

    yield making
    for consumer in made:
        consumer.close()


Make = Callable[..., Consumer[Any, Any]]


def test_a_record_comes_as_it_was_sent(cluster: Cluster, topic: str, make: Make) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"v", b"k", 1, [("a", b"1"), ("b", None)], 1234567890123)

    (record,) = read(make(topic, 3), 1)

    assert (record.topic, record.partition, record.offset) == (topic, 1, 0)
    assert (record.key, record.value, record.timestamp) == (b"k", b"v", 1234567890123)
    assert record.headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_comes_once_in_order(cluster: Cluster, topic: str, make: Make, codec: str) -> None:
    fill(cluster, topic, 3000, compression_type=codec)

    assert numbers(read(make(topic), 3000)) == list(range(3000))


def test_no_poll_gives_more_than_was_asked_for(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 100)
    consumer = make(topic, max_poll_records=7)

    seen: Records = []
    while len(seen) < 100:
        records = consumer.poll(10)
        assert 0 < len(records) <= 7
        seen += records
    assert numbers(seen) == list(range(100))


def test_answers_smaller_than_the_log_are_put_together(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 3000, batch_size=500)

    assert numbers(read(make(topic, max_partition_fetch_bytes=2000), 3000)) == list(range(3000))


def test_a_batch_larger_than_a_fetch_comes_all_the_same(cluster: Cluster, topic: str, make: Make) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"x" * 300_000, partition=0)

    assert len(read(make(topic, fetch_max_bytes=1000, max_partition_fetch_bytes=1000), 1)[0].value) == 300_000


def test_new_records_come_while_we_wait(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 1)
    consumer = make(topic)
    read(consumer, 1)
    thread = threading.Thread(target=fill, args=(cluster, topic, 5))
    thread.start()

    assert numbers(read(consumer, 5)) == list(range(5))
    thread.join()


def test_a_poll_without_news_ends_in_time_with_nothing(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 1)
    consumer = make(topic, auto_offset_reset="latest")
    consumer.position(TopicPartition(topic, 0))

    assert consumer.poll(0.05) == []
    assert consumer.poll() == []


def test_iteration_gives_records_one_by_one_and_the_rest_stays(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 100)
    consumer, partition = make(topic), TopicPartition(topic, 0)

    for record in consumer:
        if record.offset == 9:
            break
    assert consumer.position(partition) == 10
    assert numbers(read(consumer, 90)) == list(range(10, 100))
    assert consumer.position(partition) == 100


def test_seek_goes_anywhere_also_into_a_batch(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 1000)
    # A fetch that waits at the end of the log must come back before the next one is sent.
    consumer, partition = make(topic, fetch_max_wait_ms=20), TopicPartition(topic, 0)
    read(consumer, 10)

    for offset in (500, 3, 999, 0):
        consumer.seek(partition, offset)
        assert consumer.position(partition) == offset
        assert numbers(read(consumer, 1))[0] == offset
    consumer.seek_to_end()
    assert consumer.position(partition) == 1000
    consumer.seek_to_beginning([partition])
    assert numbers(read(consumer, 1000)) == list(range(1000))


def test_a_seek_into_an_iteration_drops_what_it_held(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 100)
    consumer = make(topic)
    iteration = iter(consumer)
    assert next(iteration).offset == 0

    consumer.seek(TopicPartition(topic, 0), 50)

    assert next(iteration).offset == 50


def test_paused_partitions_give_nothing_until_resumed(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 50, partition=0)
    fill(cluster, topic, 50, partition=1)
    consumer, held = make(topic, 2, max_poll_records=10), TopicPartition(topic, 0)
    read(consumer, 10)
    consumer.pause([held])
    assert consumer.paused() == {held}

    before = consumer.position(held)

    others = read(consumer, 50 - consumer.position(TopicPartition(topic, 1)))
    assert consumer.poll(0.05) == []
    assert {record.partition for record in others} == {1}
    assert consumer.position(held) == before
    consumer.resume([held])
    assert numbers(read(consumer, 50 - before)) == list(range(before, 50))


def test_where_to_begin_without_an_offset(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 5)
    partition = TopicPartition(topic, 0)

    assert make(topic, auto_offset_reset="earliest").position(partition) == 0
    assert make(topic, auto_offset_reset="latest").position(partition) == 5
    with pytest.raises(NoOffset, match="auto_offset_reset=none"):
        read(make(topic, auto_offset_reset="none"), 1)


def test_an_offset_out_of_range_is_reset_or_reported(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 5)
    partition = TopicPartition(topic, 0)
    consumer = make(topic)
    consumer.seek(partition, 77)
    assert numbers(read(consumer, 5)) == list(range(5))

    strict = make(topic, auto_offset_reset="none")
    strict.seek(partition, 77)
    with pytest.raises(NoOffset):
        read(strict, 1)
    strict.seek(partition, 4)
    assert numbers(read(strict, 1)) == [4]


def test_offsets_by_place_and_time(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 100)
    consumer, first, empty = make(), TopicPartition(topic, 0), TopicPartition(topic, 1)

    assert consumer.beginning_offsets([first, empty]) == {first: 0, empty: 0}
    assert consumer.end_offsets([first, empty]) == {first: 100, empty: 0}
    assert consumer.offsets_for_times({first: 1042, empty: 0}) == {
        first: OffsetAndTimestamp(42, 1042, 0),
        empty: None,
    }
    assert consumer.partitions_for(topic) == 3


def test_lag_is_known_after_a_fetch(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 100)
    consumer, partition = make(topic, max_poll_records=10), TopicPartition(topic, 0)

    assert consumer.lag(partition) in (None, 100)  # its first fetch may be over
    records = read(consumer, 10)  # a poll may return fewer than 10, so that the next one exceeds them
    assert consumer.lag(partition) == 100 - len(records)


def test_deserializers_make_anything_of_bytes(cluster: Cluster, topic: str, make: Make) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"5", key=b"k", partition=0)
        producer.send(topic, None, key=None, partition=0)

    records = read(make(topic, key_deserializer=bytes.decode, value_deserializer=int), 2)

    assert [(record.key, record.value) for record in records] == [("k", 5), (None, None)]


def test_a_record_that_cannot_be_deserialized_is_named_and_can_be_skipped(
    cluster: Cluster, topic: str, make: Make
) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in (b"0", b"x", b"2"):
            producer.send(topic, value, partition=0)
    consumer = make(topic, value_deserializer=int)

    assert [record.value for record in read(consumer, 1)] == [0]
    for _ in range(2):
        with pytest.raises(DeserializationFailed, match="offset 1") as raised:
            read(consumer, 1)
    consumer.seek(raised.value.partition, raised.value.offset + 1)
    assert [record.value for record in read(consumer, 1)] == [2]


def test_a_topic_that_comes_later_is_read_from_its_beginning(topic: str) -> None:
    with (
        Cluster(auto_create_topics_enable=False, num_partitions=1) as cluster,
        Consumer(
            bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", retry_backoff_max_ms=100
        ) as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.poll(0.1) == []
        from odradek import Admin

        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topic(topic, num_partitions=1)
        fill(cluster, topic, 3)
        assert numbers(read(consumer, 3)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"enable_auto_commit": True}, "enable_auto_commit=True needs a group_id"),
        ({"group_id": ""}, "group.id"),
        ({"group_protocol": "consumer"}, "group_protocol=consumer needs a group_id"),
        ({"group_id": "g", "group_protocol": "consumer", "session_timeout_ms": 1}, "the broker's to decide"),
        ({"group_id": "g", "heartbeat_interval_ms": 50_000}, "must be less than session_timeout_ms"),
        ({"auto_offset_reset": "earlyest"}, "earliest, latest, none"),
        ({"auto_offset_reset": "by_duration:1 day"}, "by_duration:PnDTnHnMn"),
        ({"group_id": "g", "partition_assignment_strategy": ["best"]}, "range, roundrobin, sticky"),
        ({"max_poll_record": 5}, "did you mean max_poll_records"),
    ],
)
def test_a_wrong_setting_is_explained(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Consumer(**settings)


def test_wrong_use_is_explained(topic: str, make: Make) -> None:
    consumer = make()
    with pytest.raises(NotSubscribed, match="subscribe\\(\\) or assign\\(\\) first"):
        consumer.poll()
    with pytest.raises(NotSubscribed, match="needs a group_id"):
        consumer.subscribe([topic])
    consumer.assign([TopicPartition(topic, 0)])
    with pytest.raises(NotSubscribed, match="is not assigned"):
        consumer.seek(TopicPartition(topic, 5), 0)
    with pytest.raises(NotSubscribed, match="need a group_id"):
        consumer.commit()
    with pytest.raises(ValueError, match="less than 0"):
        consumer.seek(TopicPartition(topic, 0), -1)


def test_two_threads_at_once_get_an_error(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 1)
    consumer = make(topic, auto_offset_reset="latest")
    waiting = threading.Thread(target=consumer.poll, args=(1,))
    waiting.start()
    deadline = time.monotonic() + 20
    with pytest.raises(RuntimeError, match="another thread uses this consumer"):  # noqa: PT012
        while time.monotonic() < deadline:
            consumer.paused()
            consumer.seek(TopicPartition(topic, 0), 0)
    waiting.join()


def test_a_closed_consumer_says_so(make: Make, topic: str) -> None:
    consumer = make(topic)
    consumer.close()
    consumer.close()

    with pytest.raises(ClientClosed, match="this consumer is closed"):
        consumer.poll()
    assert list(consumer) == []


def test_after_a_fork_the_child_gets_an_error_and_the_parent_continues(
    cluster: Cluster, topic: str, make: Make
) -> None:
    consumer = make(topic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        reported = 0
        for use in (lambda: consumer.poll(60), consumer.commit, lambda: next(iter(consumer))):
            try:
                use()
            except ClientForked:
                reported += 1
        consumer.close()
        os._exit(reported)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    fill(cluster, topic, 3)
    assert len(read(consumer, 3)) == 3


def test_a_consumer_that_was_not_closed_warns(cluster: Cluster) -> None:
    consumer = Consumer(bootstrap_servers=cluster.bootstrap)
    background, engine = consumer._background, consumer._engine
    with pytest.warns(ResourceWarning, match="not closed"):
        del consumer
    background.close(engine.close({}, 1))


def test_statistics_count(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 100)
    consumer = make(topic)
    read(consumer, 100)

    counted = consumer.statistics()
    assert (counted.records_returned, counted.buffered_bytes) == (100, 0)
    assert counted.bytes_fetched > 100
