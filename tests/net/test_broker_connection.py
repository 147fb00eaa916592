"""Requests of one broker to another over real sockets, plain and uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from net.serving import HOST, serve
from odradek.net.broker_connection import (
    Address,
    BrokerConnection,
    BrokerConnections,
    ReconnectBackoff,
    RequestFailed,
)
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.net.server import Listener
from odradek.protocol.headers import decode_request, encode_response
from odradek.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    FetchRequest,
    FetchResponse,
    UpdateMetadataRequest,
)

RECORDS = bytes(range(256)) * 4000
QUICK = ReconnectBackoff(first_s=0.001, max_s=0.01)


class Peer:
    """A broker that answers AllocateProducerIds with the epoch it got, and Fetch with many records."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []
        self.is_holding = False
        self.accepted: list[Connection] = []
        self.versions: list[tuple[str, int, str | None]] = []
        self.listener = Listener(self._handle)
        serve(self.listener)
        self.address = Address(HOST, self.listener.port)

    def _handle(self, connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        if connection not in self.accepted:
            self.accepted.append(connection)
        start, header, request = decode_request(bytes(frame))
        self.versions.append((start.api_key.name, start.version, header.client_id))
        answer: AllocateProducerIdsResponse | FetchResponse
        if isinstance(request, FetchRequest):
            rows = [FetchResponse.Responses.Partitions(records=RECORDS)]
            answer = FetchResponse(responses=[FetchResponse.Responses(partitions=rows)])
        else:
            assert isinstance(request, AllocateProducerIdsRequest)
            answer = AllocateProducerIdsResponse(producer_id_start=request.broker_epoch)
        parts = encode_response(start.api_key, start.version, start.correlation_id, answer)

        def send() -> None:
            exchange.answer(parts)

        if self.is_holding:
            self.held.append(send)
        else:
            send()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run_on_loop(scenario: Awaitable[None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(scenario, 30))

    return run_on_loop


async def allocate(connection: BrokerConnection, number: int, timeout_s: float = 20.0) -> int:
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=number)
    response = await connection.send(request, timeout_s=timeout_s)
    assert isinstance(response, AllocateProducerIdsResponse)
    return response.producer_id_start


def test_each_of_many_requests_at_once_gets_its_own_response(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1")
        numbers = await asyncio.gather(*(allocate(connection, number) for number in range(200)))
        assert numbers == list(range(200))
        assert len(peer.accepted) == 1
        assert peer.versions[0] == ("ALLOCATE_PRODUCER_IDS", 0, "1")
        connection.close()
        peer.listener.close()

    run(scenario())


def test_records_of_a_large_response_are_views_that_stay_as_they_are(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1")
        answers = [await connection.send(FetchRequest(), timeout_s=20) for _ in range(3)]
        await allocate(connection, 1)
        for answer in answers:
            assert isinstance(answer, FetchResponse)
            records = answer.responses[0].partitions[0].records
            assert isinstance(records, memoryview)
            assert bytes(records) == RECORDS
        assert ("FETCH", 17, "1") in peer.versions
        connection.close()
        peer.listener.close()

    run(scenario())


def test_a_lost_connection_fails_what_was_in_flight_and_the_next_request_connects_again(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1", backoff=QUICK)
        assert await allocate(connection, 1) == 1
        peer.is_holding = True
        waiting = [asyncio.ensure_future(allocate(connection, number)) for number in (2, 3)]
        while len(peer.held) < 2:
            await asyncio.sleep(0.001)
        peer.accepted[0].close()
        for one in waiting:
            with pytest.raises(RequestFailed, match="closed by the broker"):
                await one
        peer.is_holding = False
        assert await allocate(connection, 4) == 4
        connection.close()
        peer.listener.close()

    run(scenario())


def test_a_late_response_fails_the_request_and_is_never_taken_for_the_next_one(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1", backoff=QUICK)
        peer.is_holding = True
        with pytest.raises(RequestFailed, match=r"no response to ALLOCATE_PRODUCER_IDS within 0\.05 s"):
            await allocate(connection, 1, timeout_s=0.05)
        peer.is_holding = False
        assert await allocate(connection, 2) == 2
        assert len(peer.accepted) == 2
        connection.close()
        peer.listener.close()

    run(scenario())


def test_a_cancelled_request_does_not_disturb_the_others(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1")
        await allocate(connection, 0)
        peer.is_holding = True
        waiting = [asyncio.ensure_future(allocate(connection, number)) for number in (1, 2)]
        while len(peer.held) < 2:
            await asyncio.sleep(0.001)
        waiting[0].cancel()
        for send in peer.held:
            send()
        assert await waiting[1] == 2
        assert len(peer.accepted) == 1
        connection.close()
        peer.listener.close()

    run(scenario())


def test_a_broker_that_is_not_there_is_asked_again_after_a_pause_that_grows(run):
    async def scenario() -> None:
        peer = Peer()
        peer.listener.close()
        backoff = ReconnectBackoff(first_s=0.02, max_s=0.05)
        connection = BrokerConnection(peer.address, "1", backoff=backoff)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(4):
            with pytest.raises(RequestFailed, match="cannot connect"):
                await allocate(connection, 1)
        assert loop.time() - began > 0.1
        with pytest.raises(RequestFailed, match="no response"):
            await allocate(connection, 1, timeout_s=0.001)
        connection.close()

    run(scenario())


def test_a_closed_connection_stays_closed(run):
    async def scenario() -> None:
        peer = Peer()
        connection = BrokerConnection(peer.address, "1")
        peer.is_holding = True
        waiting = asyncio.ensure_future(allocate(connection, 1))
        while not peer.held:
            await asyncio.sleep(0.001)
        connection.close()
        for attempt in (waiting, asyncio.ensure_future(allocate(connection, 2))):
            with pytest.raises(RequestFailed, match="was closed here"):
                await attempt
        peer.listener.close()

    run(scenario())


def test_a_peer_with_another_protocol_is_disconnected(run):
    async def scenario() -> None:
        disconnected = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read()  # until the end
            disconnected.set()
            writer.close()

        server = await asyncio.start_server(talk, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        connection = BrokerConnection(Address(HOST, port), "1")
        with pytest.raises(RequestFailed):
            await connection.send(UpdateMetadataRequest(), timeout_s=2)
        await disconnected.wait()
        connection.close()
        server.close()

    run(scenario())


def test_connections_are_kept_by_broker_and_purpose_and_follow_an_address(run):
    async def scenario() -> None:
        peers = {1: Peer(), 2: Peer()}
        addresses = {id_: peer.address for id_, peer in peers.items()}
        connections = BrokerConnections(addresses.get, "0")
        first = connections.to(1)
        assert first is connections.to(1)
        assert first is not connections.to(1, "fetcher-0")
        request = AllocateProducerIdsRequest(broker_epoch=7)
        response = await connections.send(1, request, purpose="fetcher-0")
        assert isinstance(response, AllocateProducerIdsResponse)
        assert peers[1].versions == [("ALLOCATE_PRODUCER_IDS", 0, "0-fetcher-0")]
        addresses[1] = peers[2].address
        await connections.send(1, request)
        assert len(peers[2].accepted) == 1
        connections.forget(1)
        assert connections.to(1) is not first
        del addresses[1]
        with pytest.raises(RequestFailed, match="address is not known"):
            await connections.send(1, request)
        connections.close()
        for peer in peers.values():
            peer.listener.close()

    run(scenario())
