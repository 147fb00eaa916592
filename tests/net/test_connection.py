"""One connection on a loop that the test turns by hand: what is handled when, and what is sent."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek.net.connection import Connection, ConnectionLimits
from odradek.net.exchange import Exchange
from odradek.net.frames import BufferPool
from odradek.net.request_limit import RequestLimit


class HandTurnedLoop:
    """The part of an event loop that a connection uses; nothing happens but by `turn` and `pass_time`."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.writers: dict[int, Callable[[], None]] = {}
        self.soon: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> None:
        del self.readers[fd]

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        self.writers[fd] = callback

    def remove_writer(self, fd: int) -> None:
        del self.writers[fd]

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append((seconds, callback))

    def turn(self) -> None:
        """Do everything that can be done at once."""
        while True:
            readable, writable, _ = select.select(list(self.readers), list(self.writers), [], 0)
            due, self.soon = self.soon, []
            if not (readable or writable or due):
                return
            for callback in due:
                callback()
            for ready, callbacks in ((readable, self.readers), (writable, self.writers)):
                for fd in ready:
                    if fd in callbacks:
                        callbacks[fd]()

    def pass_time(self) -> None:
        """Let every timer be due."""
        due, self.timers = self.timers, []
        for _, callback in due:
            callback()
        self.turn()


class Served:
    """A connection with its client's socket; `handle` keeps the frames and their exchanges."""

    def __init__(self, limits: ConnectionLimits, request_limit: RequestLimit) -> None:
        self.loop = HandTurnedLoop()
        # Each send is one packet: the test sees which responses were sent together.
        ours, self.client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self.client.setblocking(False)
        self.frames: list[bytes] = []
        self.exchanges: list[Exchange] = []
        self.closed: list[Connection] = []
        self.connection = Connection(
            self.loop,  # type: ignore[arg-type]
            ours,
            handle=self.handle,
            on_close=self.closed.append,
            receive_buffer=memoryview(bytearray(1 << 16)),
            frame_buffers=BufferPool(1 << 20),
            limits=limits,
            request_limit=request_limit,
        )

    def handle(self, connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        self.frames.append(bytes(frame))
        self.exchanges.append(exchange)

    def send(self, *payloads: bytes) -> None:
        """From the client, in one piece; then let the connection do what it can."""
        self.client.send(b"".join(map(framed, payloads)))
        self.loop.turn()

    def answer(self, index: int, payload: bytes = b"answer") -> None:
        self.exchanges[index].answer([framed(payload)])
        self.loop.turn()

    def received(self) -> list[bytes]:
        """The packets that have arrived at the client."""
        packets: list[bytes] = []
        while select.select([self.client], [], [], 0)[0]:
            packet = self.client.recv(1 << 16)
            if not packet:
                break
            packets.append(packet)
        return packets


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture
def limits() -> ConnectionLimits:
    return ConnectionLimits()


@pytest.fixture
def request_limit() -> RequestLimit:
    return RequestLimit(max_requests=100)


@pytest.fixture
def served(limits: ConnectionLimits, request_limit: RequestLimit) -> Iterator[Served]:
    served = Served(limits, request_limit)
    yield served
    served.connection.close()
    served.client.close()


def test_requests_that_came_together_are_answered_by_one_send(served: Served) -> None:
    def answering(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        exchange.answer([framed(bytes(frame))])

    served.connection.handle_with(answering)
    served.send(b"a", b"b", b"c")
    served.send(b"d")

    assert served.received() == [framed(b"a") + framed(b"b") + framed(b"c"), framed(b"d")]


def test_a_later_request_that_is_ready_first_is_answered_with_the_earlier_one(served: Served) -> None:
    served.send(b"first", b"second")

    served.answer(1, b"2")
    assert served.received() == []
    served.answer(0, b"1")

    assert b"".join(served.received()) == framed(b"1") + framed(b"2")


@pytest.mark.parametrize("limits", [ConnectionLimits(max_open_requests=2)])
def test_requests_beyond_the_limit_are_held_and_handled_in_order(served: Served) -> None:
    served.send(b"a", b"b", b"c", b"d")
    served.send(b"e")
    assert served.frames == [b"a", b"b"]
    assert served.connection.open_requests == 2

    for done in range(3):
        served.answer(done)
        assert served.frames == [b"a", b"b", b"c", b"d", b"e"][: done + 3]


@pytest.mark.parametrize("limits", [ConnectionLimits(max_open_requests=1)])
def test_a_response_never_starts_the_next_request_inside_the_handler_that_sends_it(served: Served) -> None:
    running: list[bytes] = []

    def answering(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        assert running == []
        running.append(bytes(frame))
        exchange.answer([framed(b"")])
        running.clear()
        served.frames.append(bytes(frame))

    served.connection.handle_with(answering)
    served.send(b"a", b"b", b"c")

    assert served.frames == [b"a", b"b", b"c"]


def test_a_muted_connection_sends_responses_but_handles_nothing_until_its_time_is_over(
    served: Served,
) -> None:
    served.send(b"a")
    served.connection.mute(1.5)
    served.connection.mute(9.0)  # it is muted already
    served.send(b"b", b"c")
    served.answer(0)

    assert served.frames == [b"a"]
    assert served.received() == [framed(b"answer")]
    assert [seconds for seconds, _ in served.loop.timers] == [1.5]

    served.loop.pass_time()
    assert served.frames == [b"a", b"b", b"c"]


def test_requests_that_are_held_when_a_connection_is_muted_come_first_after_it(served: Served) -> None:
    def mute_first(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        served.handle(connection, frame, exchange)
        if frame == b"a":
            connection.mute(1.0)

    served.connection.handle_with(mute_first)
    served.send(b"a", b"b")
    served.send(b"c")
    assert served.frames == [b"a"]

    served.loop.pass_time()
    assert served.frames == [b"a", b"b", b"c"]


@pytest.mark.parametrize("limits", [ConnectionLimits(max_unsent_bytes=1000)])
def test_a_client_that_reads_no_responses_is_read_no_more_until_it_does(served: Served) -> None:
    large = b"x" * (1 << 15)
    while not served.loop.writers:  # until the socket accepts no more
        served.send(b"request")
        served.answer(len(served.exchanges) - 1, large)
    handled = len(served.frames)
    served.send(b"late")
    assert len(served.frames) == handled

    while served.received():
        served.loop.turn()
    assert served.frames[-1] == b"late"


@pytest.mark.parametrize("request_limit", [RequestLimit(max_requests=1)])
def test_at_the_limit_of_the_broker_nothing_is_read_until_another_request_ends(
    served: Served, request_limit: RequestLimit
) -> None:
    request_limit.enter(0)
    served.send(b"a")
    assert served.frames == []

    request_limit.leave(0)
    served.loop.turn()
    assert served.frames == [b"a"]


# The end of a connection


def test_closing_runs_every_callback_once_and_drops_what_is_held(served: Served) -> None:
    ended: list[str] = []
    served.send(b"a")
    served.connection.pause()
    served.send(b"b")
    served.connection.at_close["owner"] = lambda: ended.append("owner")

    served.connection.close("enough")
    served.connection.close()
    served.connection.resume()
    served.answer(0)  # the client is gone: no error

    assert (ended, served.closed) == (["owner"], [served.connection])
    assert served.frames == [b"a"]
    assert served.connection.is_closed
    assert (served.loop.readers, served.loop.writers) == ({}, {})


def test_a_handler_that_closes_its_connection_sees_none_of_the_later_requests(served: Served) -> None:
    def closing(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        served.frames.append(bytes(frame))
        connection.close()

    served.connection.handle_with(closing)
    served.send(b"a", b"b")

    assert served.frames == [b"a"]


@pytest.mark.parametrize(("sent", "is_logged"), [(framed(b"whole"), False), (framed(b"whole")[:-1], True)])
def test_only_an_end_in_the_middle_of_a_frame_is_logged(
    served: Served, caplog: pytest.LogCaptureFixture, sent: bytes, is_logged: bool
) -> None:
    caplog.set_level("INFO")
    served.client.send(sent)
    served.loop.turn()
    served.client.close()
    served.loop.turn()

    assert served.connection.is_closed
    assert ("it ended in the middle of a frame" in caplog.text) is is_logged


@pytest.mark.parametrize("limits", [ConnectionLimits(max_frame_bytes=1000)])
def test_a_frame_beyond_the_limit_ends_the_connection(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.client.send(struct.pack(">i", 1001) + b"begin")
    served.loop.turn()

    assert served.connection.is_closed
    assert served.frames == []
    assert "sent an invalid frame" in caplog.text


def test_an_ipv4_client_of_an_ipv6_socket_keeps_its_address(limits: ConnectionLimits) -> None:
    class Ipv6Socket(socket.socket):
        def getpeername(self) -> Any:
            return ("::ffff:10.1.2.3", 4711, 0, 0)

    ours, theirs = socket.socketpair()
    connection = Connection(
        HandTurnedLoop(),  # type: ignore[arg-type]
        Ipv6Socket(fileno=ours.detach()),
        handle=lambda connection, frame, exchange: None,
        on_close=lambda connection: None,
        receive_buffer=memoryview(bytearray(100)),
        frame_buffers=BufferPool(100),
        limits=limits,
        request_limit=RequestLimit(),
    )

    assert (connection.host, connection.peer) == ("10.1.2.3", "::ffff:10.1.2.3:4711")
    connection.close()
    theirs.close()
