"""The requests of transactions: their versions in v1 and v2, what is repeated, which error is raised."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, broker_errors
from odradek.client.config import ClientConfig
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.transactions.requests import TransactionRequests, concurrent_pause_ms
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ApiVersionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from odradek.protocol.structs import Message

APIS = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
PRODUCER = ProducerId(7, 3)
ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


def versions_with(transaction_version: int) -> ApiVersionsResponse:
    answer = api_versions(*APIS)
    answer.finalized_features = [
        ApiVersionsResponse.FinalizedFeatures(
            name="transaction.version",
            max_version_level=transaction_version,
            min_version_level=transaction_version,
        )
    ]
    answer.finalized_features_epoch = 1
    return answer


def a_coordinator(transaction_version: int) -> ScriptedBroker:
    broker = ScriptedBroker()

    def coordinator(_: Message) -> FindCoordinatorResponse:
        row = FindCoordinatorResponse.Coordinators(
            key="id", node_id=broker.node_id, host="127.0.0.1", port=broker.port
        )
        return FindCoordinatorResponse(coordinators=[row])

    broker.say[ApiKey.API_VERSIONS] = lambda _: versions_with(transaction_version)
    broker.say[ApiKey.FIND_COORDINATOR] = coordinator
    broker.say[ApiKey.INIT_PRODUCER_ID] = lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=3)
    return broker


def codes(*given: int) -> Callable[[Message], Message]:
    """Answers to AddPartitionsToTxn: the codes of the partitions from 0 on."""

    def say(_: Message) -> AddPartitionsToTxnResponse:
        topic = AddPartitionsToTxnResponse.ResultsByTopicV3AndBelow
        rows = [
            topic.ResultsByPartition(partition_index=index, partition_error_code=code)
            for index, code in enumerate(given)
        ]
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[topic(name="orders", results_by_partition=rows)]
        )

    return say


def in_turn(*answers: Callable[[Message], Message | None]) -> Callable[[Message], Message | None]:
    """The first for the first request, and so on."""
    left = iter(answers)

    def say(request: Message) -> Message | None:
        return next(left)(request)

    return say


def with_requests(
    broker: ScriptedBroker, scenario: Callable[[TransactionRequests], Coroutine[Any, Any, None]]
) -> None:
    async def work() -> None:
        async with broker:
            config = ClientConfig(bootstrap_servers=(broker.address,), retry_backoff_ms=1)
            brokers = Brokers(config)
            try:
                await scenario(TransactionRequests(brokers, "id", 5000))
            finally:
                await brokers.close()

    run(work())


def asked(broker: ScriptedBroker, api_key: ApiKey) -> list[tuple[int, Message]]:
    return [(version, body) for key, version, body in broker.asked if key is api_key]


@pytest.mark.parametrize(
    ("transaction_version", "end_version", "following"), [(1, 4, PRODUCER), (2, 5, ProducerId(7, 4))]
)
def test_the_end_is_asked_for_in_the_version_of_the_cluster(
    transaction_version: int, end_version: int, following: ProducerId
) -> None:
    broker = a_coordinator(transaction_version)
    broker.say[ApiKey.END_TXN] = lambda _: EndTxnResponse(producer_id=7, producer_epoch=4)

    async def scenario(requests: TransactionRequests) -> None:
        assert await requests.init_producer_id(60_000) == PRODUCER
        assert requests.uses_v2 is (transaction_version == 2)
        assert await requests.end(PRODUCER, commits=True) == following

    with_requests(broker, scenario)
    ((version, body),) = asked(broker, ApiKey.END_TXN)
    assert version == end_version
    assert isinstance(body, EndTxnRequest)
    assert (body.transactional_id, body.producer_id, body.producer_epoch) == ("id", 7, 3)
    assert body.committed


@pytest.mark.parametrize("before", [1, 2])
def test_an_end_is_repeated_in_the_version_of_its_transaction_when_the_feature_has_changed(
    before: int,
) -> None:
    """Answers get lost: an end of v1 that follows one of v2 would find its epoch used up."""
    broker = a_coordinator(before)

    def hang_up(_: Message) -> None:
        broker.say[ApiKey.API_VERSIONS] = lambda _: versions_with(3 - before)

    answer = EndTxnResponse(producer_id=7, producer_epoch=4)
    broker.say[ApiKey.END_TXN] = in_turn(hang_up, lambda _: answer, lambda _: answer)

    async def scenario(requests: TransactionRequests) -> None:
        await requests.init_producer_id(60_000)
        following = await requests.end(PRODUCER, commits=True)
        assert requests.uses_v2 is (before == 1)  # from the next transaction on
        await requests.end(following, commits=True)

    with_requests(broker, scenario)
    versions = [version for version, _ in asked(broker, ApiKey.END_TXN)]
    assert versions == ([4, 4, 5] if before == 1 else [5, 5, 4])


def test_partitions_are_added_again_while_the_last_transaction_is_completed() -> None:
    broker = a_coordinator(1)
    busy = codes(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS)
    broker.say[ApiKey.ADD_PARTITIONS_TO_TXN] = in_turn(busy, busy, busy, codes(0, 0))

    with_requests(broker, lambda requests: requests.add_partitions(PRODUCER, ORDERS))
    tried = asked(broker, ApiKey.ADD_PARTITIONS_TO_TXN)
    assert [version for version, _ in tried] == [3] * 4
    body = tried[0][1]
    assert isinstance(body, AddPartitionsToTxnRequest)
    assert [(topic.name, topic.partitions) for topic in body.v3_and_below_topics] == [("orders", [0, 1])]


def test_a_coordinator_that_has_moved_is_looked_for_again() -> None:
    broker = a_coordinator(1)
    moved = codes(ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    broker.say[ApiKey.ADD_PARTITIONS_TO_TXN] = in_turn(moved, codes(0, 0))

    with_requests(broker, lambda requests: requests.add_partitions(PRODUCER, ORDERS))
    assert len(asked(broker, ApiKey.FIND_COORDINATOR)) == 2


def test_the_partition_that_was_refused_is_named_and_not_one_that_was_not_tried() -> None:
    broker = a_coordinator(1)
    broker.say[ApiKey.ADD_PARTITIONS_TO_TXN] = codes(
        ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )

    async def scenario(requests: TransactionRequests) -> None:
        with pytest.raises(broker_errors.TopicAuthorizationFailed, match="orders-1"):
            await requests.add_partitions(PRODUCER, ORDERS)

    with_requests(broker, scenario)


@pytest.mark.parametrize(("transaction_version", "expected"), [(1, 4), (2, 5)])
def test_offsets_are_committed_with_the_member_and_in_the_version_of_the_cluster(
    transaction_version: int, expected: int
) -> None:
    broker = a_coordinator(transaction_version)
    topic = TxnOffsetCommitResponse.Topics
    broker.say[ApiKey.TXN_OFFSET_COMMIT] = lambda _: TxnOffsetCommitResponse(
        topics=[topic(name="orders", partitions=[topic.Partitions(partition_index=0)])]
    )
    group = ConsumerGroupMetadata("billing", 5, "member", "instance")

    async def scenario(requests: TransactionRequests) -> None:
        await requests.connect()
        await requests.commit_offsets(PRODUCER, group, {ORDERS[0]: OffsetAndMetadata(9, "note", 2)})

    with_requests(broker, scenario)
    ((version, body),) = asked(broker, ApiKey.TXN_OFFSET_COMMIT)
    assert version == expected
    assert isinstance(body, TxnOffsetCommitRequest)
    assert (body.group_id, body.generation_id, body.member_id) == ("billing", 5, "member")
    (row,) = body.topics[0].partitions
    assert (row.committed_offset, row.committed_metadata, row.committed_leader_epoch) == (9, "note", 2)
    assert not any(isinstance(body, AddOffsetsToTxnRequest) for _, _, body in broker.asked)


def test_pauses_grow_from_a_millisecond_to_sixteen() -> None:
    assert [concurrent_pause_ms(attempts) for attempts in (0, 1, 4, 100)] == [1, 2, 16, 16]
