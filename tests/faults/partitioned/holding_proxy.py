"""A proxy that holds one EndTxn back, ends the client's connection, and lets the request go later."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Self

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import EndTxnResponse

PATIENCE_SECONDS = 30


class HoldingProxy:
    """Forwards whole requests, with two threads a connection; `upstream` is the broker's port."""

    def __init__(self) -> None:
        self.upstream = 0
        self.held = threading.Event()
        self._is_armed = threading.Event()
        self._request = b""
        self._late: socket.socket | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def hold_next_end(self) -> None:
        """Hold the next EndTxn back."""
        self.held.clear()
        self._is_armed.set()

    def let_go(self) -> int:
        """Send the request that was held back; the error code of its answer."""
        assert self._late is not None
        self._late.sendall(self._request)
        answer = _frame_of(self._late)
        version = struct.unpack(">h", self._request[6:8])[0]
        _, response = decode_response(ApiKey.END_TXN, version, answer[4:])
        assert isinstance(response, EndTxnResponse)
        return response.error_code

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in list(self._sockets):
            _end(one)
        for thread in list(self._threads):
            thread.join(PATIENCE_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self.upstream), PATIENCE_SECONDS)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            self._sockets += [client, broker]
            for work in (self._forward_requests, self._forward_answers):
                self._threads.append(threading.Thread(target=work, args=(client, broker)))
                self._threads[-1].start()

    def _forward_requests(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame_of(client):
                if struct.unpack(">h", frame[4:6])[0] == ApiKey.END_TXN and self._is_armed.is_set():
                    self._is_armed.clear()
                    self._hold(frame)
                    break
                broker.sendall(frame)
        _end(client)
        _end(broker)

    def _hold(self, frame: bytes) -> None:
        """The request waits on a connection of its own, which outlives the client's."""
        self._request = frame
        self._late = socket.create_connection(("127.0.0.1", self.upstream), PATIENCE_SECONDS)
        self._sockets.append(self._late)
        self.held.set()

    def _forward_answers(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := broker.recv(65536):
                client.sendall(chunk)
        _end(client)


def _frame_of(one: socket.socket) -> bytes:
    """The next request or answer with its length; empty at the end."""
    content = b""
    while len(content) < 4 or len(content) < 4 + struct.unpack(">i", content[:4])[0]:
        wanted = 4 if len(content) < 4 else 4 + struct.unpack(">i", content[:4])[0]
        chunk = one.recv(wanted - len(content))
        if not chunk:
            return b""
        content += chunk
    return content


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
