"""Clients that may not do what they are told: the broker's refusal reaches the user, each time it is met.

The broker is a scripted one: it refuses what a test says, as an authorizer of Kafka would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import AsyncConsumer, AsyncProducer, TopicPartition
from odradek.client.broker_errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
)
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    FetchResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.structs import Message

SERVED = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
)
PLACE = TopicPartition("secret", 0)
IDS = {"secret": b"s" * 16, "public": b"p" * 16}


class Refusing:
    """A broker with the topics `secret` and `public`, that refuses what is in `refused`."""

    def __init__(self, broker: ScriptedBroker, refused: set[ApiKey]) -> None:
        self._broker = broker
        self._refused = refused
        broker.say |= {
            ApiKey.API_VERSIONS: lambda _: api_versions(*SERVED),
            ApiKey.METADATA: self.metadata,
            ApiKey.PRODUCE: self.produce,
            ApiKey.FETCH: self.fetch,
            ApiKey.FIND_COORDINATOR: self.find_coordinator,
            ApiKey.INIT_PRODUCER_ID: self.init_producer_id,
        }

    def metadata(self, request: Message) -> MetadataResponse:
        answer = self._broker.metadata(request)
        for name, topic_id in IDS.items():
            row = MetadataResponse.Topics.Partitions(partition_index=0, leader_id=0, leader_epoch=0)
            topic = MetadataResponse.Topics(name=name, topic_id=topic_id, partitions=[row])
            if name == "secret" and ApiKey.METADATA in self._refused:
                topic = MetadataResponse.Topics(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            answer.topics.append(topic)
        return answer

    def produce(self, request: Message) -> ProduceResponse:
        assert isinstance(request, ProduceRequest)
        answer = ProduceResponse()
        for topic in request.topic_data:
            row = ProduceResponse.Responses.PartitionResponses(index=0, base_offset=0)
            if topic.topic_id == IDS["secret"]:
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            reported = ProduceResponse.Responses(topic_id=topic.topic_id, partition_responses=[row])
            answer.responses.append(reported)
        return answer

    async def fetch(self, _: Message) -> FetchResponse:
        row = FetchResponse.Responses.Partitions(
            partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        await asyncio.sleep(0.005)
        return FetchResponse(responses=[FetchResponse.Responses(topic_id=IDS["secret"], partitions=[row])])

    def find_coordinator(self, _: Message) -> FindCoordinatorResponse:
        refusal = FindCoordinatorResponse.Coordinators(
            key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="not you"
        )
        if ApiKey.FIND_COORDINATOR not in self._refused:
            refusal.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return FindCoordinatorResponse(coordinators=[refusal])

    def init_producer_id(self, _: Message) -> InitProducerIdResponse:
        is_refused = ApiKey.INIT_PRODUCER_ID in self._refused
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if is_refused else ErrorCode.NONE
        return InitProducerIdResponse(error_code=code, producer_id=1, producer_epoch=0)


@asynccontextmanager
async def refusing(*refused: ApiKey) -> AsyncIterator[dict[str, Any]]:
    async with ScriptedBroker() as broker:
        Refusing(broker, set(refused))
        yield {"bootstrap_servers": broker.address, "retry_backoff_ms": 5}


def test_sending_to_a_topic_that_may_not_be_seen_raises_at_once() -> None:
    async def scenario() -> None:
        async with refusing(ApiKey.METADATA) as settings, AsyncProducer(**settings) as producer:
            with pytest.raises(TopicAuthorizationFailed, match="topic secret"):
                await producer.send("secret", b"v")
            assert await producer.partitions_for("public") == 1

    run(scenario())


def test_a_record_that_may_not_be_written_fails_and_the_others_continue() -> None:
    async def scenario() -> None:
        async with refusing() as settings, AsyncProducer(**settings, acks=1) as producer:
            refused = await producer.send("secret", b"v")
            written = await producer.send("public", b"v")
            assert await producer.flush(20)
            with pytest.raises(TopicAuthorizationFailed):
                await refused
            assert (await written).offset == 0

    run(scenario())


def test_a_producer_that_may_not_be_idempotent_fails_all_and_says_so_from_then_on() -> None:
    async def scenario() -> None:
        async with refusing(ApiKey.INIT_PRODUCER_ID) as settings:
            producer = AsyncProducer(**settings)
            with pytest.raises(ClusterAuthorizationFailed):
                await producer.send_and_wait("public", b"v")
            with pytest.raises(ClusterAuthorizationFailed):
                await producer.send("public", b"v")
            await producer.close(20)

    run(scenario())


@pytest.mark.parametrize("refused", [ApiKey.METADATA, ApiKey.FETCH])
def test_reading_what_may_not_be_read_raises_at_each_poll(refused: ApiKey) -> None:
    async def scenario() -> None:
        async with refusing(refused) as settings, AsyncConsumer(**settings) as consumer:
            consumer.assign([PLACE])
            consumer.seek(PLACE, 0)
            for _ in range(2):
                with pytest.raises(TopicAuthorizationFailed, match="secret"):
                    await consumer.poll(20)

    run(scenario())


def test_a_subscription_to_what_may_not_be_seen_raises() -> None:
    async def scenario() -> None:
        async with refusing(ApiKey.METADATA) as settings, AsyncConsumer(**settings, group_id="g") as consumer:
            consumer.subscribe(["secret"])
            with pytest.raises(TopicAuthorizationFailed, match="topic secret"):
                await consumer.poll(20)
            await consumer.close(0.1)

    run(scenario())


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_group_that_may_not_be_joined_raises_at_each_poll(group_protocol: str) -> None:
    async def scenario() -> None:
        async with (
            refusing(ApiKey.FIND_COORDINATOR) as settings,
            AsyncConsumer(**settings, group_id="g", group_protocol=group_protocol) as consumer,
        ):
            consumer.subscribe(["public"])
            for _ in range(2):
                with pytest.raises(GroupAuthorizationFailed, match="not you"):
                    await consumer.poll(20)
            with pytest.raises(GroupAuthorizationFailed, match="not you"):
                await consumer.commit({PLACE: 1})

    run(scenario())
