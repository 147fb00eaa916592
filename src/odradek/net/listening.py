"""Listening sockets, and the options that accepted sockets inherit."""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import NamedTuple

from odradek.common.errors import OdradekError

SYSTEMS_OWN = -1
LOOPBACK_ADDRESSES = ("127.", "::1", "::ffff:127.")
UNPACED = b"reno"
_PROBLEMS = {
    errno.EADDRINUSE: "another process has that port; stop it, or take another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; take one that it has, such as 127.0.0.1",
    errno.EACCES: "this user may not have that port; take one above 1023",
}


class ListenError(OdradekError):
    """An address that cannot be listened on, with advice."""

    def __init__(self, address: str, error: OSError) -> None:
        self.errno = error.errno
        problem = _PROBLEMS.get(error.errno or 0, error.strerror or str(error))
        super().__init__(f"cannot listen on {address}: {problem}")


class SocketOptions(NamedTuple):
    """Options of a listening socket and of accepted ones; -1 leaves a buffer size to the system."""

    send_buffer_bytes: int = SYSTEMS_OWN
    receive_buffer_bytes: int = SYSTEMS_OWN
    backlog: int = 1024


def listen(host: str, port: int, options: SocketOptions) -> socket.socket:
    """A socket that listens on that address; ListenError if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Not on accepted sockets: the window that a client is offered is decided before it is accepted.
        if options.send_buffer_bytes != SYSTEMS_OWN:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
        if options.receive_buffer_bytes != SYSTEMS_OWN:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
        listening.bind((host, port))
        if _is_loopback(listening.getsockname()[0]):
            _do_not_pace(listening)
        listening.listen(options.backlog)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ListenError(f"{host}:{port}", error) from error
    return listening


def make_ready(accepted: socket.socket, peer_ip: str) -> None:
    """Prepare an accepted socket to send responses without delay."""
    accepted.setblocking(False)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if _is_loopback(peer_ip):
        _do_not_pace(accepted)


def _is_loopback(ip: str) -> bool:
    return ip.startswith(LOOPBACK_ADDRESSES)


def _do_not_pace(sock: socket.socket) -> None:
    """Use an unpaced congestion control on the loopback interface.

    A control that paces (BBR) sets a timer for each packet, a third of what a fetch costs us. A socket that
    once had it keeps setting timers under another one, so this is set on the listening socket.
    Where the system allows no other control, its own stays.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)
