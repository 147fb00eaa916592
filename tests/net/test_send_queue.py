"""Parts of answers on a real socket: in order, in full packets, and nothing held back at the end."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.requests.fetch.file_parts import LogPart
from odradek.log.files.file_system import FileRange, FileSystem
from odradek.net.send_queue import SendQueue

MIB = 1 << 20


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as ours,
    ):
        ours.setblocking(False)
        client.settimeout(20)
        yield ours, client


def a_file(tmp_path: Path, size: int) -> tuple[FileRange, bytes]:
    content = os.urandom(size)
    path = tmp_path / "segment"
    path.write_bytes(content)
    return FileRange(FileSystem().open(str(path)), 0, size), content


def is_corked(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) != 0


def receive(client: socket.socket, size: int) -> bytes:
    taken = bytearray()
    while len(taken) < size:
        taken += client.recv(size - len(taken))
    return bytes(taken)


def test_what_stands_around_files_goes_out_with_them_and_at_once(pair, tmp_path: Path) -> None:
    ours, client = pair
    run, content = a_file(tmp_path, 30_000)
    queue = SendQueue(ours)
    assert queue.send([b"head", LogPart(run), b"between", LogPart(run), b"tail"])
    assert not is_corked(ours), "else the kernel keeps the tail for 200 ms"
    assert receive(client, 60_015) == b"head" + content + b"between" + content + b"tail"


def test_an_answer_that_does_not_fit_is_held_together_until_it_is_through(pair, tmp_path: Path) -> None:
    ours, client = pair
    run, content = a_file(tmp_path, 20 * MIB)
    queue = SendQueue(ours)
    assert not queue.send([b"head", LogPart(run), bytearray(b"tail")])
    assert is_corked(ours)
    assert not queue.send([b"next"])
    taken = bytearray()
    while not queue.flush():
        taken += client.recv(MIB)
    taken += receive(client, 20 * MIB + 12 - len(taken))
    assert taken == b"head" + content + b"tailnext"
    assert not is_corked(ours)
    assert queue.unsent_bytes == 0


def test_bytes_alone_need_no_cork_and_wait_for_room_in_order(pair) -> None:
    ours, client = pair
    queue = SendQueue(ours)
    many = [os.urandom(MIB) for _ in range(20)]
    is_through = queue.send([b"first", *many, memoryview(b"last")])
    assert not is_through
    assert not is_corked(ours)
    taken = bytearray()
    while not queue.flush():
        taken += client.recv(MIB)
    taken += receive(client, 20 * MIB + 9 - len(taken))
    assert taken == b"first" + b"".join(many) + b"last"


def test_a_large_answer_in_one_piece_continues_where_it_stopped(pair) -> None:
    ours, client = pair
    queue = SendQueue(ours)
    answer = os.urandom(20 * MIB)
    assert not queue.send([answer])
    taken = bytearray()
    while not queue.flush():
        taken += client.recv(MIB)
    taken += receive(client, 20 * MIB - len(taken))
    assert taken == answer


def test_a_socket_without_corks_serves_as_well(tmp_path: Path) -> None:
    ours, client = socket.socketpair()
    with ours, client:
        ours.setblocking(False)
        run, content = a_file(tmp_path, 50_000)
        assert SendQueue(ours).send([b"head", LogPart(run), b"tail"])
        assert receive(client, 50_008) == b"head" + content + b"tail"


def test_a_file_that_became_shorter_ends_the_connection(pair, tmp_path: Path) -> None:
    ours, client = pair
    run, content = a_file(tmp_path, 50_000)
    os.truncate(tmp_path / "segment", 40_000)
    with pytest.raises(OSError, match="became shorter"):
        SendQueue(ours).send([b"head", LogPart(run), b"tail"])
    assert receive(client, 4 + 39_000) == b"head" + content[:39_000]
