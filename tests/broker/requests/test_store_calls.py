from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from odradek.broker.requests.store_calls import StoreNotReached, from_store
from odradek.common.error_codes import ErrorCode
from odradek.coordination.errors import ConnectionLoss, DamagedPayload, SessionExpired, StoreError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from odradek.protocol.structs import Message

TOPIC, BROKER = 2, 4
LATE = ErrorCode.REQUEST_TIMED_OUT
NEW_TOPIC = CreateTopicsRequest.Topics(name="new", num_partitions=1, replication_factor=1)


class StoreAway:
    """A store of which every operation ends, or does not end, in the same way."""

    def __init__(self, operate: Callable[[], Awaitable[Any]]) -> None:
        self.operate = operate

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return lambda *_, **__: self.operate()


def raising(error: StoreError) -> StoreAway:
    async def operate() -> None:
        raise error

    return StoreAway(operate)


ASKED = [
    (ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[NEW_TOPIC], timeout_ms=5000), "topics"),
    (ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5000), "responses"),
    (
        ApiKey.METADATA,
        9,
        MetadataRequest(topics=[MetadataRequest.Topics(name="new")], allow_auto_topic_creation=True),
        "topics",
    ),
    (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.Resources(resource_type=BROKER, resource_name="0")]
        ),
        "results",
    ),
    (
        ApiKey.ALTER_CONFIGS,
        2,
        AlterConfigsRequest(
            resources=[AlterConfigsRequest.Resources(resource_type=TOPIC, resource_name="orders")]
        ),
        "responses",
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        IncrementalAlterConfigsRequest(
            resources=[IncrementalAlterConfigsRequest.Resources(resource_type=BROKER, resource_name="0")]
        ),
        "responses",
    ),
]


@pytest.mark.parametrize("error", [ConnectionLoss("lost"), SessionExpired("over")])
@pytest.mark.parametrize(
    ("api_key", "version", "request_", "rows"), ASKED, ids=lambda one: getattr(one, "name", "")
)
def test_a_store_that_is_away_is_an_error_to_come_again_with(
    run, caplog, error: StoreError, api_key: ApiKey, version: int, request_: Message, rows: str
) -> None:
    async def scenario(broker, wire):
        broker.store = raising(error)
        response = await wire.ask(api_key, version, request_)
        (row,) = getattr(response, rows)
        assert row.error_code == LATE
        assert ErrorCode(row.error_code).is_retriable

    run(scenario)
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_producer_id_that_cannot_be_had_is_asked_for_again(run) -> None:
    async def scenario(broker, wire):
        broker.store = raising(ConnectionLoss("lost"))
        response = await wire.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=None))
        assert response.error_code == LATE

    run(scenario)


def test_a_store_that_never_answers_costs_no_more_than_the_time_of_the_request(run) -> None:
    async def scenario(broker, wire):
        broker.store = StoreAway(asyncio.Event().wait)
        request = CreateTopicsRequest(topics=[NEW_TOPIC], timeout_ms=50)
        (row,) = (await wire.ask(ApiKey.CREATE_TOPICS, 7, request)).topics
        assert row.error_code == LATE

    run(scenario)


def test_what_will_not_pass_is_not_called_retriable() -> None:
    async def damaged() -> None:
        raise DamagedPayload("topic", "no JSON")

    async def lost() -> None:
        raise ConnectionLoss("lost")

    with pytest.raises(DamagedPayload):
        asyncio.run(from_store(damaged()))
    with pytest.raises(StoreNotReached):
        asyncio.run(from_store(lost()))
