"""A member of a group as a process of its own, to be stopped, killed and started again by a test.

    python member.py LIBRARY '{"bootstrap": …, "group": …, "topic": …, "instance": …, "protocol": …}'

It prints `read PARTITION OFFSET` for each record and `committed PARTITION OFFSET` for each commit, which it
makes after every batch, before anything can be taken from it. It leaves when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import warnings
from collections.abc import Iterable
from typing import Any

SESSION_MS = 3_000
HEARTBEAT_MS = 300


def tell_read(records: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Print what was read; the offsets to commit."""
    following = {}
    for partition, offset in records:
        print("read", partition, offset)
        following[partition] = offset + 1
    sys.stdout.flush()
    return following


def tell_committed(following: dict[int, int]) -> None:
    for partition, offset in following.items():
        print("committed", partition, offset)
    sys.stdout.flush()


def stop_event() -> threading.Event:
    """Set when whoever started us closes our input."""
    event = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        event.set()

    threading.Thread(target=wait, daemon=True).start()
    return event


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
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": options.get("assignor", "roundrobin"),
        }
    consumer = confluent_kafka.Consumer(settings)
    # With callbacks of ours, partitions are only taken away while we poll.
    consumer.subscribe([options["topic"]], on_assign=lambda *_: None, on_revoke=lambda *_: None)
    stopping = stop_event()
    while not stopping.is_set():
        messages = [one for one in consumer.consume(50, 0.1) if one.error() is None]
        following = tell_read((one.partition(), one.offset()) for one in messages)
        if following:
            offsets = [confluent_kafka.TopicPartition(options["topic"], *one) for one in following.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
            tell_committed(following)
    consumer.close()


def kafka_python(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import kafka
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    consumer = kafka.KafkaConsumer(
        options["topic"],
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        metadata_max_age_ms=1_000,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )
    stopping = stop_event()
    while not stopping.is_set():
        polled = consumer.poll(100, max_records=50)
        following = tell_read((one.partition, one.offset) for batch in polled.values() for one in batch)
        if following:
            consumer.commit()
            tell_committed(following)
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
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1_000,
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
        )
        busy = asyncio.Lock()

        class Listener(aiokafka.ConsumerRebalanceListener):
            async def on_partitions_revoked(self, revoked: object) -> None:
                async with busy:
                    return

            async def on_partitions_assigned(self, assigned: object) -> None:
                return

        consumer.subscribe([options["topic"]], listener=Listener())
        await consumer.start()
        stopping = stop_event()
        while not stopping.is_set():
            polled = await consumer.getmany(timeout_ms=100, max_records=50)
            # Nothing is awaited between the two: partitions are not taken away with records in our hands.
            async with busy:
                following = tell_read(
                    (one.partition, one.offset) for batch in polled.values() for one in batch
                )
                if following:
                    await consumer.commit()
                    tell_committed(following)
        await consumer.stop()

    asyncio.run(run())


LIBRARIES = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aio}

if __name__ == "__main__":
    LIBRARIES[sys.argv[1]](json.loads(sys.argv[2]))
