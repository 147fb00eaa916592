"""Real sockets against a listener on a real loop, plain and uvloop."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from net.serving import HOST, serve
from odradek.net.admission import Admission, AdmissionLimits
from odradek.net.connection import Connection, ConnectionLimits
from odradek.net.exchange import Exchange
from odradek.net.listening import ListenError
from odradek.net.server import Listener, ListenerLimits
from odradek.net.socket_calls import send_file


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    return await reader.readexactly(size)


def echo(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
    exchange.answer([framed(bytes(frame))])


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run_on_loop(scenario: Awaitable[None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(scenario, 20))

    return run_on_loop


async def connect(listener: Listener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(HOST, listener.port)


def test_requests_are_answered(run):
    async def scenario() -> None:
        listener = Listener(echo)
        serve(listener)
        reader, writer = await connect(listener)
        for payload in (b"", b"one", bytes(300_000), b"three"):
            writer.write(framed(payload))
            assert await read_frame(reader) == payload
        writer.close()
        while listener.connection_count:
            await asyncio.sleep(0.001)
        listener.close()

    run(scenario())


def test_large_and_small_requests_follow_one_another_in_any_pieces(run):
    """A connection reads on in another way once a large request came; nothing may depend on it."""

    async def scenario() -> None:
        listener = Listener(echo)
        serve(listener)
        reader, writer = await connect(listener)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rng = random.Random(7)
        sizes = [300_000, 5, 300_000, 70_000, 0, 4_092, 4_093, 200_000, 100_000, 3, 500_000, 66_000, 65_537]
        payloads = [rng.randbytes(size) for size in rng.choices(sizes, k=60)]
        answers = asyncio.create_task(read_all(reader, len(payloads)))
        unsent = b"".join(map(framed, payloads))
        while unsent:
            count = rng.choice((1, 2, 3, 4, 5, 4_095, 4_096, 4_100, 60_000, 300_000, 700_000))
            writer.write(unsent[:count])
            unsent = unsent[count:]
            await writer.drain()
            await asyncio.sleep(rng.choice((0, 0, 0.002)))
        assert await answers == payloads
        writer.close()
        listener.close()

    run(scenario())


async def read_all(reader: asyncio.StreamReader, count: int) -> list[bytes]:
    return [await read_frame(reader) for _ in range(count)]


def test_pipelined_requests_are_answered_in_order_though_ready_in_another(run):
    async def scenario() -> None:
        waiting: list[tuple[bytes, Exchange]] = []

        def park(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
            waiting.append((bytes(frame), exchange))
            if len(waiting) == 10:
                for payload, parked in reversed(waiting):
                    parked.answer([framed(payload)])
                waiting.clear()

        listener = Listener(park)
        serve(listener)
        reader, writer = await connect(listener)
        payloads = [b"%d" % number for number in range(50)]
        writer.write(b"".join(map(framed, payloads)))
        assert [await read_frame(reader) for _ in payloads] == payloads
        listener.close()
        writer.close()

    run(scenario())


def test_reading_stops_while_too_many_requests_are_open_and_continues_after(run):
    async def scenario() -> None:
        parked: list[Exchange] = []
        listener = Listener(
            lambda connection, frame, exchange: parked.append(exchange),
            connection_limits=ConnectionLimits(max_open_requests=3),
        )
        serve(listener)
        reader, writer = await connect(listener)
        writer.write(framed(b"x") * 10)
        await asyncio.sleep(0.05)
        assert len(parked) == 3

        answered = 0
        while answered < 10:
            parked.pop(0).answer([framed(b"%d" % answered)] if answered % 2 else ())
            answered += 1
            await asyncio.sleep(0.005)
            assert len(parked) == min(3, 10 - answered)
        assert [await read_frame(reader) for _ in range(5)] == [b"1", b"3", b"5", b"7", b"9"]
        listener.close()
        writer.close()

    run(scenario())


def test_a_client_that_does_not_read_is_not_read_either(run):
    async def scenario() -> None:
        served = 0

        def big_answer(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
            nonlocal served
            served += 1
            exchange.answer([framed(bytes(200_000))])

        listener = Listener(big_answer, connection_limits=ConnectionLimits(max_unsent_bytes=1_000_000))
        serve(listener)
        sock = socket.create_connection((HOST, listener.port))
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, framed(b"x") * 500)
        await asyncio.sleep(0.1)
        before_reading = served
        received = 0
        while received < 500 * 200_004:
            received += len(await loop.sock_recv(sock, 1 << 20))
        assert before_reading < 100
        assert served == 500
        sock.close()
        listener.close()

    run(scenario())


class Range:
    """A run of a file; notes how it was taken."""

    def __init__(self, fd: int, position: int, length: int, taken: list[str]) -> None:
        self.fd, self.position, self.length, self.taken = fd, position, length, taken

    def __len__(self) -> int:
        return self.length

    def send_to(self, socket_fd: int, start: int) -> int:
        self.taken.append("sent")
        return max(send_file(socket_fd, self.fd, self.position + start, self.length - start), 0)

    def read(self) -> bytes:
        self.taken.append("read")
        found = os.pread(self.fd, self.length, self.position)
        if len(found) < self.length:
            raise OSError("it became shorter")
        return found


@pytest.mark.parametrize(("length", "how"), [(2_000_000, "sent"), (10_000, "read")])
def test_a_file_goes_out_between_bytes(run, tmp_path: Path, length: int, how: str):
    content = os.urandom(3_000_000)
    (tmp_path / "segment").write_bytes(content)
    taken: list[str] = []

    async def scenario() -> None:
        fd = os.open(tmp_path / "segment", os.O_RDONLY)

        def fetch(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
            size = struct.pack(">i", length + 6)
            exchange.answer([size, b"abc", Range(fd, 500_000, length, taken), memoryview(b"def")])

        listener = Listener(fetch)
        serve(listener)
        reader, writer = await connect(listener)
        writer.write(framed(b"fetch") * 3)
        for _ in range(3):
            assert await read_frame(reader) == b"abc" + content[500_000 : 500_000 + length] + b"def"
        writer.close()
        listener.close()
        os.close(fd)

    run(scenario())
    assert set(taken) == {how}


@pytest.mark.parametrize("requests", [1, 3])
def test_a_small_file_that_became_shorter_ends_the_connection(run, tmp_path: Path, requests: int):
    (tmp_path / "segment").write_bytes(b"short")

    async def scenario() -> None:
        fd = os.open(tmp_path / "segment", os.O_RDONLY)
        listener = Listener(lambda _, __, exchange: exchange.answer([b"abc", Range(fd, 0, 100, [])]))
        serve(listener)
        reader, writer = await connect(listener)
        writer.write(framed(b"fetch") * requests)
        assert await reader.read() == b""
        writer.close()
        listener.close()
        os.close(fd)

    run(scenario())


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0"]
)
def test_garbage_closes_its_connection_and_no_other(run, garbage: bytes):
    async def scenario() -> None:
        listener = Listener(echo, connection_limits=ConnectionLimits(max_frame_bytes=1000))
        serve(listener)
        good_reader, good_writer = await connect(listener)
        reader, writer = await connect(listener)
        writer.write(garbage)
        writer.write_eof()
        assert await reader.read() == b""
        good_writer.write(framed(b"still here"))
        assert await read_frame(good_reader) == b"still here"
        assert listener.connection_count == 1
        writer.close()
        good_writer.close()
        listener.close()

    run(scenario())


def test_a_reset_in_the_middle_of_an_answer_harms_nobody(run):
    async def scenario() -> None:
        parked: list[Exchange] = []
        listener = Listener(lambda connection, frame, exchange: parked.append(exchange))
        serve(listener)
        sock = socket.create_connection((HOST, listener.port))
        sock.sendall(framed(b"x") * 2)
        while len(parked) < 2:
            await asyncio.sleep(0.001)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        parked[0].answer([framed(bytes(1_000_000))])
        while listener.connection_count:
            await asyncio.sleep(0.001)
        parked[1].answer([framed(b"late")])
        reader, writer = await connect(listener)
        writer.write(framed(b"x"))
        while len(parked) < 3:
            await asyncio.sleep(0.001)
        parked[2].answer([framed(b"still here")])
        assert await read_frame(reader) == b"still here"
        writer.close()
        listener.close()

    run(scenario())


def test_connections_beyond_the_limits_are_closed_at_once(run):
    async def scenario() -> None:
        for limits, admission in (
            (ListenerLimits(max_connections=2), Admission()),
            (ListenerLimits(), Admission(AdmissionLimits(max_connections=2))),
            (ListenerLimits(), Admission(AdmissionLimits(max_connections_per_ip=2))),
            (
                ListenerLimits(),
                Admission(AdmissionLimits(max_connections_per_ip=0, per_ip_overrides={"127.0.0.1": 2})),
            ),
        ):
            listener = Listener(echo, limits=limits, admission=admission)
            serve(listener)
            kept = [await connect(listener) for _ in range(2)]
            reader, writer = await connect(listener)
            assert await reader.read() == b""
            assert (listener.connection_count, listener.refused) == (2, 1)
            kept[0][1].close()
            while listener.connection_count == 2:
                await asyncio.sleep(0.001)
            late_reader, late_writer = await connect(listener)
            late_writer.write(framed(b"let in"))
            assert await read_frame(late_reader) == b"let in"
            for open_writer in (writer, late_writer, kept[1][1]):
                open_writer.close()
            listener.close()

    run(scenario())


def test_an_idle_connection_is_closed_but_not_one_that_waits_for_us(run):
    async def scenario() -> None:
        parked: list[Exchange] = []
        listener = Listener(
            lambda connection, frame, exchange: parked.append(exchange),
            limits=ListenerLimits(max_idle_seconds=0.1),
        )
        serve(listener)
        idle_reader, idle_writer = await connect(listener)
        waiting_reader, waiting_writer = await connect(listener)
        waiting_writer.write(framed(b"x"))
        assert await idle_reader.read() == b""
        assert listener.connection_count == 1
        parked[0].answer([framed(b"at last")])
        assert await read_frame(waiting_reader) == b"at last"
        for writer in (idle_writer, waiting_writer):
            writer.close()
        listener.close()

    run(scenario())


def test_a_port_in_use_is_a_clear_error(run):
    async def scenario() -> None:
        first, second = Listener(echo), Listener(echo)
        first.listen(HOST, 0)
        with pytest.raises(ListenError, match="another process has that port"):
            second.listen(HOST, first.port)
        first.close()

    run(scenario())
