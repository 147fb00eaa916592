"""Where processes of a Spark query stop at the hooks of odradek.spark.transactions, to be killed there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

OnPoint = Callable[[str, int], None]
"""Called with the place and the process that is there, which goes on when it returns, if it still lives."""


class HookServer:
    """Every process that comes to a hook is passed to `on_point`, one after the other."""

    def __init__(self, on_point: OnPoint) -> None:
        self._on_point = on_point
        self._one_at_a_time = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.errors: list[BaseException] = []
        threading.Thread(target=self._accept, name="hooks", daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            point, _, pid = connection.makefile("r").readline().strip().partition(" ")
            if point:
                with self._one_at_a_time:
                    try:
                        self._on_point(point, int(pid))
                    except BaseException as error:
                        self.errors.append(error)
                connection.sendall(b".")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()
