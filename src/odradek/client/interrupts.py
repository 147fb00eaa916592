"""Ctrl-C put off for a moment: code that must not end in the middle can run on a user's main thread.

Python calls signal handlers on the main thread, between any two instructions, and the usual one of SIGINT
raises. What a client does for itself on a user's thread would be left half done.
"""

from __future__ import annotations

import threading

# What the module `signal` wraps to name its constants, which takes longer than all that is protected here.
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Callable
from types import FrameType, TracebackType


class InterruptsDeferred:
    """Inside of it SIGINT is only noted; its handler is called, and may raise, at the end.

    On other threads than the main one, which never run handlers, it does nothing.
    """

    __slots__ = ("_handler", "_noted")

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = None
        self._noted: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == threading.main_thread().ident and callable(getsignal(SIGINT)):
            # An interrupt until here is raised here, before anything has begun.
            self._handler = signal(SIGINT, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._handler is None:
            return
        signal(SIGINT, self._handler)
        if self._noted is not None:
            self._handler(*self._noted)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = (number, frame)
