"""What sockets say of themselves, accepted by one that listens."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from odradek.net.listening import SYSTEMS_OWN, UNPACED, ListenError, SocketOptions, listen, make_ready

HOST = "127.0.0.1"
KAFKAS = 102_400
LINUX_DOUBLES = 2
"""The kernel reckons with as much again for its own bookkeeping, and says so when asked."""
PLACE_OF_BACKLOG = 8 + 5 * 4
"""In struct tcp_info of a socket that listens: where others have the number of segments in flight."""


@contextmanager
def accepted_by(listening: socket.socket) -> Iterator[socket.socket]:
    with socket.create_connection(listening.getsockname()):
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            yield accepted


@contextmanager
def a_pair(options: SocketOptions) -> Iterator[socket.socket]:
    with listen(HOST, 0, options) as listening, accepted_by(listening) as accepted:
        make_ready(accepted, HOST)
        yield accepted


@contextmanager
def a_system_pair() -> Iterator[socket.socket]:
    """Its buffers are the system's for this congestion control: they differ from one to the other."""
    with socket.create_server((HOST, 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)
        with accepted_by(listening) as accepted:
            yield accepted


def buffer_bytes(asked: socket.socket, which: int) -> int:
    return asked.getsockopt(socket.SOL_SOCKET, which)


def control(asked: socket.socket) -> bytes:
    return asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def test_accepted_sockets_have_the_buffers_that_were_asked_for() -> None:
    with a_pair(SocketOptions(KAFKAS, 50_000)) as accepted:
        assert buffer_bytes(accepted, socket.SO_SNDBUF) == LINUX_DOUBLES * KAFKAS
        assert buffer_bytes(accepted, socket.SO_RCVBUF) == LINUX_DOUBLES * 50_000


def test_buffers_are_left_to_the_system_by_minus_one() -> None:
    with a_pair(SocketOptions(SYSTEMS_OWN, SYSTEMS_OWN)) as accepted, a_system_pair() as other:
        for which in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            assert buffer_bytes(accepted, which) == buffer_bytes(other, which)


@pytest.mark.parametrize("backlog", [1, 50, 300])
def test_as_many_connections_may_wait_as_was_asked_for(backlog: int) -> None:
    with listen(HOST, 0, SocketOptions(backlog=backlog)) as listening:
        info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        assert struct.unpack_from("=I", info, PLACE_OF_BACKLOG) == (backlog,)


def test_an_accepted_socket_sends_small_answers_at_once_and_never_blocks() -> None:
    with a_pair(SocketOptions()) as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not accepted.getblocking()


def test_nothing_is_paced_inside_of_one_machine() -> None:
    with a_pair(SocketOptions()) as accepted:
        assert control(accepted) in (b"reno", b"cubic")


def test_a_socket_on_the_loopback_address_is_accepted_unpaced() -> None:
    with listen(HOST, 0, SocketOptions()) as listening, accepted_by(listening) as accepted:
        assert control(accepted) == UNPACED


def test_a_socket_on_every_address_listens_with_the_systems_congestion_control() -> None:
    with listen("0.0.0.0", 0, SocketOptions()) as listening, socket.socket() as untouched:
        assert control(listening) == control(untouched)


def test_clients_of_other_machines_keep_the_systems_congestion_control() -> None:
    with (
        socket.create_server((HOST, 0)) as listening,
        accepted_by(listening) as accepted,
        socket.socket() as untouched,
    ):
        make_ready(accepted, "192.0.2.1")
        assert control(accepted) == control(untouched)


def test_an_address_that_this_machine_does_not_have_is_reported() -> None:
    with pytest.raises(ListenError, match=r"192\.0\.2\.7:0: this machine has no such address; take one that"):
        listen("192.0.2.7", 0, SocketOptions())


def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on no\.such\.host\.invalid:0: .*(known|resol)"):
        listen("no.such.host.invalid", 0, SocketOptions())


@pytest.mark.parametrize(
    ("number", "reported"),
    [
        (errno.EADDRINUSE, "another process has that port; stop it, or take another port"),
        (errno.EACCES, "this user may not have that port; take one above 1023"),
        (errno.EINVAL, "Invalid argument"),
    ],
)
def test_each_refusal_of_the_system_has_its_sentence(number: int, reported: str) -> None:
    refused = ListenError("127.0.0.1:80", OSError(number, os.strerror(number)))
    assert str(refused) == f"cannot listen on 127.0.0.1:80: {reported}"
