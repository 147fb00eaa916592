"""Receiving and sending where nothing may wait: what is there, what fits, and what is broken."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.net.socket_calls import NOTHING_YET, receive, send, send_file

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def test_what_came_is_received_then_nothing_then_the_end(pair: Pair) -> None:
    ours, theirs = pair
    buffer = memoryview(bytearray(8))
    theirs.sendall(b"hello")

    assert receive(ours.fileno(), buffer) == 5
    assert bytes(buffer[:5]) == b"hello"
    assert receive(ours.fileno(), buffer) == NOTHING_YET
    theirs.close()
    assert receive(ours.fileno(), buffer) == 0


def test_what_is_sent_arrives_and_a_full_socket_takes_nothing(pair: Pair) -> None:
    ours, theirs = pair

    assert send(ours.fileno(), b"hello") == send(ours.fileno(), bytearray(b"world")) == 5
    assert theirs.recv(10) == b"helloworld"
    while send(ours.fileno(), bytes(100_000)):
        pass
    assert send(ours.fileno(), b"more") == 0


def test_a_file_is_sent_to_its_end_and_a_full_socket_takes_nothing_of_it(pair: Pair, tmp_path: Path) -> None:
    ours, theirs = pair
    path = tmp_path / "segment"
    path.write_bytes(b"hello" * 40_000)

    with path.open("rb") as file:
        assert send_file(ours.fileno(), file.fileno(), 3, 4) == 4
        assert theirs.recv(10) == b"lohe"
        assert send_file(ours.fileno(), file.fileno(), 200_000, 5) == 0
        while send_file(ours.fileno(), file.fileno(), 0, 200_000) > 0:
            pass
        assert send_file(ours.fileno(), file.fileno(), 0, 200_000) == NOTHING_YET
        theirs.close()
        with pytest.raises(OSError, match="Broken pipe"):
            send_file(ours.fileno(), file.fileno(), 0, 200_000)


def test_a_broken_socket_is_an_error(pair: Pair) -> None:
    ours, theirs = pair
    theirs.close()

    with pytest.raises(OSError, match="Broken pipe"):
        send(ours.fileno(), b"hello")
    with pytest.raises(OSError, match="Bad file descriptor"):
        receive(-1, memoryview(bytearray(8)))
