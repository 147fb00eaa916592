"""Questions that go to the leaders of partitions, while leaders move."""

from __future__ import annotations

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.offsets import OffsetSpec
from odradek.client.broker_errors import LeaderNotAvailable, TopicAuthorizationFailed
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListOffsetsResponse, MetadataResponse
from odradek.protocol.structs import Message

ORDERS = TopicPartition("orders", 0)


class Leaders:
    """Two brokers, one of which leads the partition."""

    def __init__(self, one: ScriptedBroker, two: ScriptedBroker) -> None:
        self.leader_id, self.epoch = one.node_id, 0
        self.error_code = ErrorCode.NONE
        self.brokers = [one, two]
        for broker in self.brokers:
            broker.cluster = self.brokers
            broker.say[ApiKey.API_VERSIONS] = lambda _: api_versions(
                ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.LIST_OFFSETS
            )
            broker.say[ApiKey.METADATA] = self.metadata

    def metadata(self, request: Message) -> Message:
        answer = self.brokers[0].metadata(request)
        topics = MetadataResponse.Topics
        row = topics.Partitions(partition_index=0, leader_id=self.leader_id, leader_epoch=self.epoch)
        code = self.error_code
        answer.topics = [
            topics(name="orders", error_code=code, topic_id=b"1" * 16, partitions=[] if code else [row])
        ]
        return answer

    def move(self, node_id: int) -> None:
        self.leader_id, self.epoch = node_id, self.epoch + 1


def an_answer(offset: int, error_code: int = ErrorCode.NONE) -> ListOffsetsResponse:
    rows = ListOffsetsResponse.Topics
    row = rows.Partitions(partition_index=0, offset=offset, error_code=error_code)
    return ListOffsetsResponse(topics=[rows(name="orders", partitions=[row])])


def test_a_question_follows_the_leader():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            leaders = Leaders(one, two)

            def no_longer(_: Message) -> Message:
                leaders.move(2)
                return an_answer(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)

            one.say[ApiKey.LIST_OFFSETS] = no_longer
            two.say[ApiKey.LIST_OFFSETS] = lambda _: an_answer(7)
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                found = await admin.list_offsets({ORDERS: OffsetSpec.LATEST})
            assert found[ORDERS].offset == 7

    run(scenario())


def test_a_partition_without_a_leader_is_an_error_when_the_time_is_over():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            leaders = Leaders(one, two)
            leaders.move(-1)
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                found = await admin.list_offsets({ORDERS: OffsetSpec.LATEST}, timeout_ms=50)
            assert isinstance(found[ORDERS], LeaderNotAvailable)
            assert "no leader is known for orders-0" in str(found[ORDERS])

    run(scenario())


def test_a_topic_that_one_may_not_see_is_that_error():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            leaders = Leaders(one, two)
            leaders.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            async with AsyncAdmin(bootstrap_servers=one.address) as admin:
                found = await admin.list_offsets({ORDERS: OffsetSpec.LATEST})
            assert isinstance(found[ORDERS], TopicAuthorizationFailed)

    run(scenario())
