"""confluent-kafka, which is librdkafka in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from compat.clients.face import PATIENCE_SECONDS, Received, Record, TooLarge, kafka_names


class Librdkafka:
    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self.servers = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient(self.servers)

    def produce(self, topic: str, records: Sequence[Record], *, codec: str = "none") -> list[int]:
        limits = {"message.max.bytes": 10_000_000, "linger.ms": 100}
        producer = Producer({**self.servers, **limits, "compression.type": codec})
        delivered: list[tuple[KafkaError | None, Message]] = []
        for record in records:
            producer.produce(
                topic,
                record.value,
                key=record.key,
                partition=0,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=lambda error, message: delivered.append((error, message)),
            )
        assert producer.flush(PATIENCE_SECONDS) == 0
        return [_offset(error, message) for error, message in delivered]

    def consume(self, topic: str, count: int, *, start: int | None = 0) -> list[Received]:
        def read(consumer: Consumer) -> list[Received]:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING if start is None else start)])
            return [_received(message) for message in consumer.consume(count, timeout=PATIENCE_SECONDS)]

        return self._with_consumer(read)

    def first_and_next_offset(self, topic: str) -> tuple[int, int]:
        place = TopicPartition(topic, 0)
        return self._with_consumer(lambda consumer: consumer.get_watermark_offsets(place, PATIENCE_SECONDS))

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        asked = [TopicPartition(topic, 0, timestamp_ms)]
        (found,) = self._with_consumer(lambda consumer: consumer.offsets_for_times(asked, PATIENCE_SECONDS))
        return found.offset if found.offset >= 0 else None

    def _with_consumer(self, use: Callable[[Consumer], Any]) -> Any:
        consumer = Consumer({**self.servers, "group.id": "unused", "enable.auto.commit": False})
        try:
            return use(consumer)
        finally:
            consumer.close()

    def create_topic(self, topic: str, *, partitions: int = 1, **configs: str) -> None:
        new = NewTopic(topic, partitions, 1, config=kafka_names(configs))
        self.admin.create_topics([new])[topic].result(PATIENCE_SECONDS)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=PATIENCE_SECONDS).topics)

    def partition_count(self, topic: str) -> int:
        described = self.admin.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic]
        assert all(partition.leader == 0 for partition in described.partitions.values())
        return len(described.partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE_SECONDS)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(PATIENCE_SECONDS)

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = TopicPartition(topic, 0, before_offset)
        (deleted,) = self.admin.delete_records([place]).values()
        return int(deleted.result(PATIENCE_SECONDS).low_watermark)

    def topic_configs(self, topic: str) -> dict[str, str]:
        (described,) = self.admin.describe_configs([_resource(topic)]).values()
        return {entry.name: entry.value for entry in described.result(PATIENCE_SECONDS).values()}

    def alter_topic_config(self, topic: str, key: str, value: str) -> None:
        changed = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        (altered,) = self.admin.incremental_alter_configs([_resource(topic, changed)]).values()
        altered.result(PATIENCE_SECONDS)

    def broker_ids(self) -> list[int]:
        return sorted(node.id for node in self.admin.describe_cluster().result(PATIENCE_SECONDS).nodes)

    def close(self) -> None:
        return None


def _resource(topic: str, *changed: ConfigEntry) -> ConfigResource:
    return ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=list(changed) or None)


def _offset(error: KafkaError | None, message: Message) -> int:
    if error is None:
        return int(message.offset())
    raise TooLarge if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else KafkaException(error)


def _received(message: Message) -> Received:
    assert message.error() is None
    kind, timestamp_ms = message.timestamp()
    headers = tuple(message.headers() or ())
    # librdkafka counts from 1: 0 says that there is no time.
    return Received(
        message.offset(),
        Record(message.value(), message.key(), headers, timestamp_ms),
        timestamp_type=kind - 1,
    )
