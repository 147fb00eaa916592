"""Frames straight into the dispatcher: how they are decoded, handled and answered, with a fake connection."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from broker.conftest import Broker
from broker.wire import a_batch, a_produce, request_frame
from odradek.broker.requests import dispatch
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import Dispatcher, handles, load_handler
from odradek.broker.requests.served_apis import SERVED
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination.errors import ConnectionLoss, DamagedPayload, StoreError
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeLogDirsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
)
from odradek.protocol.structs import Message

HEARTBEAT, HEARTBEAT_VERSION = ApiKey.HEARTBEAT, 4
CREATE_TOPICS_VERSION = 7
Handler = Callable[[RequestContext, Any], Any]


class Client:
    """Connection and client in one: sends frames to the dispatcher and keeps the responses."""

    peer = "a test"
    host = "127.0.0.1"
    is_closed = False

    def __init__(self, broker: Broker) -> None:
        self.services = broker.services
        self.dispatcher = Dispatcher(broker.services, "PLAINTEXT")
        self.at_close: dict[Any, Any] = {}
        self.close_reason: str | None = None
        self.responses: list[bytes] = []
        self._exchanges = ExchangeQueue(self._on_response)

    def _on_response(self, parts: Any) -> None:
        self.responses.append(b"".join(bytes(part) for part in parts)[4:])

    def close(self, reason: str) -> None:
        self.close_reason = reason

    def send_bytes(self, frame: bytes) -> None:
        self.dispatcher.handle(cast(Connection, self), memoryview(bytearray(frame)), self._exchanges.begin())

    def send(self, api_key: ApiKey, version: int, body: Message, correlation_id: int = 1) -> None:
        self.send_bytes(request_frame(api_key, version, body, correlation_id)[4:])

    def heartbeat(self, correlation_id: int = 1) -> None:
        self.send(HEARTBEAT, HEARTBEAT_VERSION, HeartbeatRequest(group_id="g"), correlation_id)

    def heartbeats_answered(self) -> list[tuple[int, int]]:
        """Correlation id and error code of each response."""
        decoded = [decode_response(HEARTBEAT, HEARTBEAT_VERSION, each) for each in self.responses]
        return [(correlation_id, cast(Any, body).error_code) for correlation_id, body in decoded]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def client(tmp_path: Path, runner: asyncio.Runner) -> Iterator[Client]:
    async def start() -> Broker:
        return Broker(tmp_path, asyncio.get_running_loop())

    async def stop() -> None:
        broker.close()

    broker = runner.run(start())
    broker.host()
    yield Client(broker)
    runner.run(stop())


@pytest.fixture
def handle_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[ApiKey, Handler], None]:
    """Replaces the handler of an API."""

    def replace(api_key: ApiKey, handler: Handler) -> None:
        entry = load_handler(api_key)
        assert entry is not None
        monkeypatch.setitem(dispatch._HANDLERS, api_key, entry._replace(function=handler))

    return replace


def raising(error: Exception) -> Handler:
    def handler(context: RequestContext, request: Any) -> Message:
        raise error

    return handler


def raising_later(error: Exception) -> Handler:
    async def handler(context: RequestContext, request: Any) -> Message:
        await asyncio.sleep(0)
        raise error

    return handler


async def yield_to_loop(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# Requests that are refused


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (b"\0\x12\0\0", "a request of 4 bytes has no header"),
        (struct.pack(">hhih", 999, 0, 1, -1), "there is no API with key 999"),
        (struct.pack(">hhihi", ApiKey.METADATA, 4, 1, -1, 5), "sent a bad request"),
    ],
    ids=["short", "unknown API", "malformed body"],
)
def test_a_malformed_frame_closes_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture, frame: bytes, problem: str
) -> None:
    client.send_bytes(frame)

    assert client.close_reason == "it sent a bad request"
    assert problem in caplog.text
    assert client.responses == []
    assert client.dispatcher.counters[ApiKey.METADATA].requests == 0


@pytest.mark.parametrize(
    ("api_key", "version", "served"),
    [(ApiKey.PRODUCE, 2, "versions 3-13"), (ApiKey.RENEW_DELEGATION_TOKEN, 0, "nothing")],
)
def test_an_unsupported_version_closes_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture, api_key: ApiKey, version: int, served: str
) -> None:
    client.send_bytes(struct.pack(">hhih", api_key, version, 1, -1))

    assert client.close_reason is not None
    assert api_key.name in client.close_reason
    assert f"a test asked for {api_key.name} v{version}; served: {served}" in caplog.text
    assert client.responses == []


def test_an_unsupported_version_of_api_versions_is_answered_in_version_0(client: Client) -> None:
    client.send_bytes(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 42, -1) + b"fields of a later version")
    client.send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), 43)

    assert client.close_reason is None
    (refused_id, refused), (served_id, served) = (
        decode_response(ApiKey.API_VERSIONS, 0, each) for each in client.responses
    )
    assert (refused_id, cast(Any, refused).error_code) == (42, ErrorCode.UNSUPPORTED_VERSION)
    assert (served_id, cast(Any, served).error_code) == (43, ErrorCode.NONE)
    assert {row.api_key for row in cast(Any, served).api_keys} == set(SERVED)


def test_bytes_after_the_message_are_ignored(client: Client, handle_by: Any) -> None:
    handle_by(HEARTBEAT, lambda context, request: HeartbeatResponse())

    client.send_bytes(request_frame(HEARTBEAT, HEARTBEAT_VERSION, HeartbeatRequest())[4:] + b"more")

    assert client.heartbeats_answered() == [(1, ErrorCode.NONE)]


def test_an_api_has_only_one_handler() -> None:
    load_handler(HEARTBEAT)
    with pytest.raises(AssertionError, match="HEARTBEAT has two handlers"):
        handles(HEARTBEAT, SERVED[HEARTBEAT])(lambda context, request: None)


# Responses


def test_responses_are_sent_in_the_order_of_the_requests(
    client: Client, runner: asyncio.Runner, handle_by: Any
) -> None:
    async def scenario() -> None:
        is_released = asyncio.Event()

        async def wait(context: RequestContext, request: Any) -> Message:
            await is_released.wait()
            return HeartbeatResponse()

        def handler(context: RequestContext, request: Any) -> Any:
            return wait(context, request) if context.correlation_id == 1 else HeartbeatResponse()

        handle_by(HEARTBEAT, handler)
        for correlation_id in (1, 2, 3):
            client.heartbeat(correlation_id)
        await yield_to_loop()
        assert client.responses == []
        is_released.set()
        await yield_to_loop()
        assert [correlation_id for correlation_id, _ in client.heartbeats_answered()] == [1, 2, 3]

    runner.run(scenario())


def test_a_handler_that_returns_none_answers_through_its_context(client: Client, handle_by: Any) -> None:
    contexts: list[RequestContext] = []
    handle_by(HEARTBEAT, lambda context, request: contexts.append(context))

    client.heartbeat(7)
    assert client.responses == []
    contexts[0].answer(HeartbeatResponse())

    assert client.heartbeats_answered() == [(7, ErrorCode.NONE)]


def test_requests_and_bytes_are_counted_by_api(client: Client, handle_by: Any) -> None:
    handle_by(HEARTBEAT, lambda context, request: HeartbeatResponse())
    frame = request_frame(HEARTBEAT, HEARTBEAT_VERSION, HeartbeatRequest())[4:]

    client.send_bytes(frame)
    client.send_bytes(frame)

    counters = client.dispatcher.counters[HEARTBEAT]
    assert (counters.requests, counters.request_bytes, counters.errors) == (2, 2 * len(frame), 0)
    assert counters.response_bytes == sum(4 + len(each) for each in client.responses)
    assert client.dispatcher.counters[ApiKey.PRODUCE].requests == 0


def test_a_produce_without_acks_has_no_response(client: Client) -> None:
    client.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), "orders", acks=0))

    assert client.responses == [b""]
    assert client.close_reason is None
    partition = client.services.replicas.find("orders", 0)
    assert partition is not None
    assert partition.log.log_end_offset == 1


# Errors


@pytest.mark.parametrize("fail", [raising, raising_later])
def test_an_error_of_the_handler_is_the_error_of_the_response(
    client: Client, runner: asyncio.Runner, handle_by: Any, fail: Callable[[Exception], Handler]
) -> None:
    async def scenario() -> None:
        handle_by(HEARTBEAT, fail(KafkaError("not now", error_code=ErrorCode.REBALANCE_IN_PROGRESS)))
        client.heartbeat(3)
        await yield_to_loop()

    runner.run(scenario())
    assert client.heartbeats_answered() == [(3, ErrorCode.REBALANCE_IN_PROGRESS)]
    assert client.dispatcher.counters[HEARTBEAT].errors == 1
    assert client.close_reason is None


@pytest.mark.parametrize("fail", [raising, raising_later])
def test_an_unexpected_exception_is_logged_and_hidden_from_the_client(
    client: Client,
    runner: asyncio.Runner,
    handle_by: Any,
    caplog: pytest.LogCaptureFixture,
    fail: Callable[[Exception], Handler],
) -> None:
    async def scenario() -> None:
        handle_by(HEARTBEAT, fail(ZeroDivisionError("of this test")))
        client.heartbeat(3)
        await yield_to_loop()

    runner.run(scenario())
    assert client.heartbeats_answered() == [(3, ErrorCode.UNKNOWN_SERVER_ERROR)]
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert "HEARTBEAT v4" in record.getMessage()


@pytest.mark.parametrize(
    ("error", "error_code"),
    [
        (ConnectionLoss("no answer"), ErrorCode.REQUEST_TIMED_OUT),
        (DamagedPayload("topic", "no JSON"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_of_the_store_is_retriable_only_if_it_may_pass(
    client: Client, runner: asyncio.Runner, handle_by: Any, error: StoreError, error_code: ErrorCode
) -> None:
    async def scenario() -> None:
        handle_by(HEARTBEAT, raising_later(error))
        client.heartbeat()
        await yield_to_loop()

    runner.run(scenario())
    assert client.heartbeats_answered() == [(1, error_code)]


def test_a_failed_produce_without_acks_closes_the_connection(client: Client, handle_by: Any) -> None:
    handle_by(ApiKey.PRODUCE, raising(KafkaError("no space", error_code=ErrorCode.KAFKA_STORAGE_ERROR)))

    client.send(ApiKey.PRODUCE, 9, ProduceRequest(acks=0))

    assert client.responses == []
    assert client.close_reason == "PRODUCE failed: no space"


def test_a_request_that_is_not_authorized_does_not_reach_its_handler(client: Client, handle_by: Any) -> None:
    class NobodyIsAllowed:
        def allows(self, *_: object) -> bool:
            return False

    handled: list[Any] = []
    handle_by(ApiKey.DESCRIBE_LOG_DIRS, lambda context, request: handled.append(request))
    client.services.authorizer = cast(Any, NobodyIsAllowed())

    client.send(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest())

    assert handled == []
    _, response = decode_response(ApiKey.DESCRIBE_LOG_DIRS, 4, client.responses[0])
    assert cast(Any, response).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# queued.max.requests


@pytest.mark.parametrize(
    ("api_key", "version", "request_body", "response", "counted"),
    [
        (ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, CreateTopicsRequest(), CreateTopicsResponse(), 1),
        (HEARTBEAT, HEARTBEAT_VERSION, HeartbeatRequest(), HeartbeatResponse(), 0),
    ],
    ids=["in threads or the store", "waits for other clients"],
)
def test_only_requests_that_wait_for_threads_or_the_store_are_limited(
    client: Client,
    runner: asyncio.Runner,
    handle_by: Any,
    api_key: ApiKey,
    version: int,
    request_body: Message,
    response: Message,
    counted: int,
) -> None:
    async def scenario() -> None:
        is_released = asyncio.Event()

        async def handler(context: RequestContext, request: Any) -> Message:
            await is_released.wait()
            return response

        handle_by(api_key, handler)
        limit = client.services.request_limit
        client.send(api_key, version, request_body)
        await yield_to_loop()
        size = len(request_frame(api_key, version, request_body)) - 4
        assert (limit.open_requests, limit.open_bytes) == (counted, counted * size)
        is_released.set()
        await yield_to_loop()
        assert (limit.open_requests, limit.open_bytes) == (0, 0)
        assert len(client.responses) == 1

    runner.run(scenario())
