"""A member of a group as a process of its own, to be stopped, killed and started again by a test.

    python member.py LIBRARY '{"bootstrap": …, "group": …, "topic": …, "instance": …, "protocol": …}'

It prints, each with topic and partition, `read … OFFSET` for a record, `committed … OFFSET` for a commit,
which it makes after every batch, before anything can be taken from it, and one line `assigned …` for the
partitions of an assignment; `fenced` before it ends because another member took its instance id. A line on
its standard input names the topics to subscribe to from now on; it leaves when its input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import warnings
from collections.abc import Collection, Iterable
from queue import SimpleQueue
from typing import Any

SESSION_MS = 3_000
HEARTBEAT_MS = 300
BATCH = 50

Record = tuple[str, int, int]
Offsets = dict[tuple[str, int], int]


def report(*words: object) -> None:
    print(*words, flush=True)


def report_read(records: Iterable[Record]) -> Offsets:
    """Print what was read; the offsets to commit."""
    following = {}
    for topic, partition, offset in records:
        print("read", topic, partition, offset)
        following[topic, partition] = offset + 1
    sys.stdout.flush()
    return following


def report_committed(following: Offsets) -> None:
    for (topic, partition), offset in following.items():
        print("committed", topic, partition, offset)
    sys.stdout.flush()


def report_assigned(partitions: Iterable[Any]) -> None:
    report("assigned", *(f"{one.topic}:{one.partition}" for one in partitions))


class Orders:
    """Commands from the process that started this one: other topics, and in the end to leave."""

    def __init__(self) -> None:
        self.are_over = threading.Event()
        self._subscriptions: SimpleQueue[list[str]] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._subscriptions.put(line.split())
        self.are_over.set()

    def new_topics(self) -> list[str]:
        """The topics to subscribe to from now on; nothing if that has not changed."""
        return [] if self._subscriptions.empty() else self._subscriptions.get()


def session_ms(options: dict[str, Any]) -> int:
    return int(options.get("session_ms", SESSION_MS))


def odradek(options: dict[str, Any]) -> None:
    from odradek import Consumer, TopicPartition
    from odradek.client.broker_errors import FencedInstanceId
    from odradek.client.consumer.subscription import RebalanceListener

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            report_assigned(partitions)

    settings: dict[str, Any] = {
        "session_timeout_ms": session_ms(options),
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "partition_assignment_strategy": [options.get("assignor", "roundrobin")],
    }
    if options.get("protocol") == "consumer":
        settings = {"group_protocol": "consumer"}
    consumer = Consumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,
        max_poll_records=BATCH,
        **settings,
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    orders = Orders()
    try:
        while not orders.are_over.is_set():
            if topics := orders.new_topics():
                consumer.subscribe(topics, listener=Listener())
            following = report_read((one.topic, one.partition, one.offset) for one in consumer.poll(0.1))
            if following:
                consumer.commit({TopicPartition(*place): offset for place, offset in following.items()})
                report_committed(following)
    except FencedInstanceId:
        report("fenced")
    consumer.close()


def librdkafka(options: dict[str, Any]) -> None:
    import confluent_kafka

    settings = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "metadata.max.age.ms": 1_000,
        "topic.metadata.refresh.interval.ms": 1_000,
        "log_level": 0,
    }
    if options.get("instance"):
        settings["group.instance.id"] = options["instance"]
    if options.get("protocol") == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings |= {
            "session.timeout.ms": session_ms(options),
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": options.get("assignor", "roundrobin"),
        }
    consumer = confluent_kafka.Consumer(settings)

    def subscribe(topics: list[str]) -> None:
        # With callbacks of ours, partitions are only taken away while we poll.
        consumer.subscribe(
            topics, on_assign=lambda _, partitions: report_assigned(partitions), on_revoke=lambda *_: None
        )

    def is_fenced(error: confluent_kafka.KafkaError | None) -> bool:
        return error is not None and error.code() == confluent_kafka.KafkaError._FATAL

    def commit(offsets: list[confluent_kafka.TopicPartition]) -> bool:
        """False if another has our instance id, which the next poll reports as well."""
        deadline = time.monotonic() + 30
        while True:
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except confluent_kafka.KafkaException as refused:
                if is_fenced(refused.args[0]):
                    return False
                # A cooperative member joins again in the background, with records in our hands.
                is_joining = options.get("assignor") == "cooperative-sticky"
                if not is_joining or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return True

    subscribe([options["topic"]])
    orders = Orders()
    while not orders.are_over.is_set():
        if topics := orders.new_topics():
            subscribe(topics)
        messages = consumer.consume(BATCH, 0.1)
        if any(is_fenced(one.error()) for one in messages):
            report("fenced")
            break
        following = report_read(
            (one.topic(), one.partition(), one.offset()) for one in messages if one.error() is None
        )
        if following:
            offsets = [confluent_kafka.TopicPartition(*place, offset) for place, offset in following.items()]
            if commit(offsets):
                report_committed(following)
    consumer.close()


def kafka_python(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    class Listener(kafka.ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: object) -> None:
            return

        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            report_assigned(assigned)

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_ms(options),
        heartbeat_interval_ms=HEARTBEAT_MS,
        metadata_max_age_ms=1_000,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    orders = Orders()
    while not orders.are_over.is_set():
        if topics := orders.new_topics():
            consumer.subscribe(topics, listener=Listener())
        polled = consumer.poll(100, max_records=BATCH)
        following = report_read(
            (one.topic, one.partition, one.offset) for batch in polled.values() for one in batch
        )
        if following:
            consumer.commit()
            report_committed(following)
    consumer.close()


def aio(options: dict[str, Any]) -> None:
    import aiokafka
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=options["bootstrap"],
            group_id=options["group"],
            group_instance_id=options.get("instance"),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=session_ms(options),
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1_000,
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
        )
        busy = asyncio.Lock()

        class Listener(aiokafka.ConsumerRebalanceListener):
            async def on_partitions_revoked(self, revoked: object) -> None:
                async with busy:
                    return

            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                report_assigned(assigned)

        consumer.subscribe([options["topic"]], listener=Listener())
        await consumer.start()
        orders = Orders()
        while not orders.are_over.is_set():
            if topics := orders.new_topics():
                consumer.subscribe(topics, listener=Listener())
            polled = await consumer.getmany(timeout_ms=100, max_records=BATCH)
            # Nothing is awaited between the two: partitions are not taken away with records in our hands.
            async with busy:
                following = report_read(
                    (one.topic, one.partition, one.offset) for batch in polled.values() for one in batch
                )
                if following:
                    await consumer.commit()
                    report_committed(following)
        await consumer.stop()

    asyncio.run(run())


LIBRARIES = {"odradek": odradek, "librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aio}

if __name__ == "__main__":
    LIBRARIES[sys.argv[1]](json.loads(sys.argv[2]))
