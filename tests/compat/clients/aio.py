"""aiokafka, which uses the old, inflexible versions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from compat.clients.face import PATIENCE_SECONDS, Received, Record, TooLarge, kafka_names


class Aiokafka:
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(self, topic: str, records: Sequence[Record], *, codec: str = "none") -> list[int]:
        async def send(producer: AIOKafkaProducer) -> list[int]:
            sent = [await producer.send(topic, partition=0, **_fields(record)) for record in records]
            try:
                return [(await one).offset for one in sent]
            except MessageSizeTooLargeError as error:
                raise TooLarge from error

        compression = None if codec == "none" else codec
        return _run(
            lambda: AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=compression,
                max_request_size=10_000_000,
                linger_ms=20,
            ),
            send,
        )

    def consume(self, topic: str, count: int, *, start: int | None = 0) -> list[Received]:
        async def read(consumer: AIOKafkaConsumer, place: TopicPartition) -> list[Received]:
            if start is None:
                await consumer.seek_to_beginning(place)
            else:
                consumer.seek(place, start)
            return [_received(await consumer.getone()) for _ in range(count)]

        return self._with_consumer(topic, read)

    def first_and_next_offset(self, topic: str) -> tuple[int, int]:
        async def ask(consumer: AIOKafkaConsumer, place: TopicPartition) -> tuple[int, int]:
            first = await consumer.beginning_offsets([place])
            return first[place], (await consumer.end_offsets([place]))[place]

        return self._with_consumer(topic, ask)

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        async def ask(consumer: AIOKafkaConsumer, place: TopicPartition) -> int | None:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else found.offset

        return self._with_consumer(topic, ask)

    def _with_consumer(
        self, topic: str, use: Callable[[AIOKafkaConsumer, TopicPartition], Awaitable[Any]]
    ) -> Any:
        async def with_place(consumer: AIOKafkaConsumer) -> Any:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            return await use(consumer, place)

        return _run(lambda: AIOKafkaConsumer(bootstrap_servers=self.bootstrap), with_place)

    def _administer(self, use: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        return _run(lambda: AIOKafkaAdminClient(bootstrap_servers=self.bootstrap), use)

    def create_topic(self, topic: str, *, partitions: int = 1, **configs: str) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=kafka_names(configs))
        answer = self._administer(lambda admin: admin.create_topics([new]))
        ((name, error_code, message),) = answer.topic_errors
        assert (name, error_code) == (topic, 0), message

    def topics(self) -> set[str]:
        return set(self._administer(lambda admin: admin.list_topics()))

    def partition_count(self, topic: str) -> int:
        (described,) = self._administer(lambda admin: admin.describe_topics([topic]))
        assert all(partition["leader"] == 0 for partition in described["partitions"])
        return len(described["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        new = {topic: NewPartitions(total)}
        answer = self._administer(lambda admin: admin.create_partitions(new))
        assert [(name, code) for name, code, _ in answer.topic_errors] == [(topic, 0)]

    def delete_topic(self, topic: str) -> None:
        answer = self._administer(lambda admin: admin.delete_topics([topic]))
        assert answer.topic_error_codes == [(topic, 0)]

    def delete_records(self, topic: str, before_offset: int) -> int:
        place = TopicPartition(topic, 0)
        wanted = {place: RecordsToDelete(before_offset)}
        return int(self._administer(lambda admin: admin.delete_records(wanted))[place])

    def topic_configs(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._administer(lambda admin: admin.describe_configs([resource]))
        ((error_code, _, _, name, entries),) = answer.resources
        assert (error_code, name) == (0, topic)
        return {entry[0]: entry[1] for entry in entries}

    def alter_topic_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        (answer,) = self._administer(lambda admin: admin.alter_configs([resource]))
        assert [row[0] for row in answer.resources] == [0]

    def broker_ids(self) -> list[int]:
        described = self._administer(lambda admin: admin.describe_cluster())
        return sorted(broker["node_id"] for broker in described["brokers"])

    def close(self) -> None:
        return None


def _run(make: Callable[[], Any], use: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start a client, use it, and stop it, on a loop of its own."""

    async def using() -> Any:
        client = make()
        await client.start()
        try:
            return await use(client)
        finally:
            await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())

    return asyncio.run(asyncio.wait_for(using(), PATIENCE_SECONDS))


def _fields(record: Record) -> dict[str, Any]:
    return {
        "value": record.value,
        "key": record.key,
        "headers": list(record.headers),
        "timestamp_ms": record.timestamp_ms,
    }


def _received(found: ConsumerRecord) -> Received:
    record = Record(found.value, found.key, tuple(found.headers), found.timestamp)
    return Received(found.offset, record, found.timestamp_type)
