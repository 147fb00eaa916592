"""What handlers call on the context of a request: answer once, be throttled, ask for permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from broker.conftest import Broker
from odradek.broker.requests.context import RequestContext, RequestVersion
from odradek.broker.security.acls import ANONYMOUS, AccessDenied, Operation, Resource, ResourceType
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import HeartbeatResponse

HEARTBEAT = RequestVersion(ApiKey.HEARTBEAT, 4)
CORRELATION_ID = 41


class Client:
    """The connection of a client: keeps the responses, and for how long it was muted."""

    host = "192.0.2.7"

    def __init__(self, broker: Broker) -> None:
        self.responses: list[bytes] = []
        self.muted_s: list[float] = []
        self.close_reason: str | None = None
        self.counters = RequestCounters()
        self.context = RequestContext(
            broker.services,
            "PLAINTEXT",
            cast(Connection, self),
            ExchangeQueue(self._send).begin(),
            HEARTBEAT,
            CORRELATION_ID,
            "test",
            self.counters,
        )

    def _send(self, parts: Any) -> None:
        self.responses.append(b"".join(bytes(part) for part in parts))

    def mute(self, seconds: float) -> None:
        self.muted_s.append(seconds)

    def close(self, reason: str) -> None:
        self.close_reason = reason


class FixedQuota:
    """Throttles every request for the same time."""

    def __init__(self, throttle_time_ms: int) -> None:
        self.time_ms = throttle_time_ms

    def throttle_time_ms(self, api_key: ApiKey, principal: str, client_id: str | None) -> int:
        assert (api_key, principal, client_id) == (ApiKey.HEARTBEAT, ANONYMOUS, "test")
        return self.time_ms


class TopicReaders:
    """Allows reading of one topic, from one host."""

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        return (principal, host, operation, resource) == (
            ANONYMOUS,
            Client.host,
            Operation.READ,
            Resource.topic("orders"),
        )

    def allows_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return (operation, resource_type) == (Operation.READ, ResourceType.TOPIC)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    async def start() -> Broker:
        return Broker(tmp_path, asyncio.get_running_loop())

    async def stop() -> None:
        broker.close()

    with asyncio.Runner() as runner:
        broker = runner.run(start())
        yield Client(broker)
        runner.run(stop())


def response_of(client: Client) -> tuple[int, HeartbeatResponse]:
    (frame,) = client.responses
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    return cast("tuple[int, HeartbeatResponse]", decode_response(ApiKey.HEARTBEAT, 4, frame[4:]))


def test_an_answer_has_the_correlation_id_of_its_request_and_is_counted(client: Client) -> None:
    client.context.answer(HeartbeatResponse(error_code=27))

    correlation_id, response = response_of(client)
    assert (correlation_id, response.error_code) == (CORRELATION_ID, 27)
    assert client.counters.response_bytes == len(client.responses[0])
    assert client.counters.seconds > 0


def test_a_request_without_a_response_frees_its_place_in_the_order(client: Client) -> None:
    client.context.answer_nothing()

    assert client.responses == [b""]
    assert client.counters.seconds > 0


def test_an_answer_that_cannot_be_encoded_closes_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.context.answer(HeartbeatResponse(error_code=10**6))

    assert client.responses == []
    assert client.close_reason == "there is no response to its request"
    assert "the response to HEARTBEAT v4 cannot be encoded" in caplog.text


def test_a_throttled_client_gets_its_response_at_once_and_is_muted(client: Client) -> None:
    client.context.services.quotas = FixedQuota(250)

    client.context.answer(HeartbeatResponse())

    assert response_of(client)[1].throttle_time_ms == 250
    assert client.muted_s == [0.25]


def test_a_client_within_its_quota_is_not_muted(client: Client) -> None:
    client.context.services.quotas = FixedQuota(0)

    client.context.answer(HeartbeatResponse())

    assert response_of(client)[1].throttle_time_ms == 0
    assert client.muted_s == []


def test_without_an_authorizer_everything_is_allowed(client: Client) -> None:
    client.context.authorize(Operation.CLUSTER_ACTION)

    assert client.context.is_allowed(Operation.DELETE, Resource.topic("orders"))
    assert client.context.is_allowed_anywhere(Operation.DELETE, ResourceType.TOPIC)


def test_the_authorizer_is_asked_for_the_principal_and_the_host(client: Client) -> None:
    client.context.services.authorizer = cast(Any, TopicReaders())

    client.context.authorize(Operation.READ, Resource.topic("orders"))
    assert not client.context.is_allowed(Operation.READ, Resource.topic("bills"))
    assert client.context.is_allowed_anywhere(Operation.READ, ResourceType.TOPIC)
    assert not client.context.is_allowed_anywhere(Operation.WRITE, ResourceType.TOPIC)
    with pytest.raises(AccessDenied):
        client.context.authorize(Operation.WRITE, Resource.topic("orders"))


def test_the_client_host_is_printed_as_java_does(client: Client) -> None:
    assert client.context.client_host == "/192.0.2.7"
