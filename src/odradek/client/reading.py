# cython: annotation_typing=False
"""Whose turn it is to read answers: the loop's, or that of a thread that waits for one and can do it itself.

A thread that waits for the loop to read an answer wakes up late: the loop's thread must wake first, then
wake the other, and then let go of the interpreter. So the loop lends connections to threads that wait:

    wait for an answer                  ->  asks the loop to lend its connection, and waits as ever
    the loop: `lend`                        stops reading it, and tells those who wait
    wait for the next answer            ->  whoever has the turn polls all that is lent, and reads
    other threads that wait meanwhile   ->  stand by; who has the turn reads their answers too, and tells them
                                            when it leaves
    the loop: `take_back`                   rings, waits until the turn is over, reads by itself again:
                                            when it has something to send, or an end, or nobody waits any more

What was read goes to those who wait by functions that know that they may not be on the loop
(`Called.take_at_once`); everything out of the ordinary is left to the loop.

Compiled by Cython, or interpreted as is: compiled, Ctrl-C cannot strike between taking a turn and the `try`
that gives it back.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Protocol

from odradek.client.interrupts import InterruptsDeferred

UNUSED_S = 0.02
"""What is lent and was not used for so long is taken back: answers must not lie unread."""
PAUSE_S = 0.05
"""So long nothing is lent after the loop had to take something back: others use the connection too."""


class Lent(Protocol):
    """A connection that can be read by another thread than the loop's."""

    is_lent: bool

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""

    def descriptor(self) -> int:
        """Of its socket; it stays the same until the end."""

    def pause_reading(self) -> None:
        """On the loop: leave what comes to others."""

    def resume_reading(self) -> None:
        """On the loop: read again."""

    def read_answers(self) -> bool:
        """From the thread whose turn it is: hand out what has come; False if the loop must look at it."""


class SharedReading:
    """The connections of one client that its loop lends to threads. Made and closed on the loop."""

    def __init__(self, unused_s: float = UNUSED_S, pause_s: float = PAUSE_S) -> None:
        self._unused_s = unused_s
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._turn = threading.Lock()  # who has it may read, or change what is lent
        self._reader: int | None = None  # the thread that reads
        self._lent: dict[int, Lent] = {}
        self._poller = select.poll()
        self._bell: tuple[int, int] | None = None
        self._is_recalled = False
        self._is_asked = False
        self._not_before = 0.0
        self._uses = self._uses_seen = 0
        self.standing_by: dict[Waiter, None] = {}
        """Those who wait and do not read."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    # On the loop.

    def lend(self, connection: Lent) -> None:
        """Leave a connection to threads that wait."""
        self._is_asked = False
        if self._is_closed or connection.is_lent or not connection.is_open:
            return
        with self._no_reader():
            descriptor = connection.descriptor()
            connection.pause_reading()
            connection.is_lent = True
            self._lent[descriptor] = connection
            self._poller.register(descriptor, select.POLLIN)
            if self._bell is None:
                self._bell = os.pipe()
                self._poller.register(self._bell[0], select.POLLIN)
        self._tell_others()
        if self._timer is None:
            self._look_later()

    def take_back(self) -> None:
        """Read everything on the loop again; when this returns, no other thread does."""
        if not self._lent:
            return
        self._not_before = time.monotonic() + self._pause_s
        with self._no_reader():
            for descriptor, connection in self._lent.items():
                self._poller.unregister(descriptor)
                connection.is_lent = False
                connection.resume_reading()
            self._lent.clear()

    def close(self) -> None:
        """Lend nothing any more."""
        self._is_closed = True
        self.take_back()
        if self._timer is not None:
            self._timer.cancel()
        with self._turn:
            if self._bell is not None:
                for end in self._bell:
                    os.close(end)
                self._bell = None

    @contextmanager
    def _no_reader(self) -> Iterator[None]:
        """The turn, which whoever has it gives up at once."""
        self._is_recalled = True
        self.ring()
        with self._turn:
            self._is_recalled = False
            yield

    def _look_later(self) -> None:
        self._uses_seen = self._uses
        self._timer = self._loop.call_later(self._unused_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._uses == self._uses_seen and self._reader is None:
            self.take_back()
            self._not_before = 0.0
        elif self._lent:
            self._look_later()

    # On any thread.

    def ask_for(self, connection: Lent) -> None:
        """Somebody waits for an answer of this connection, and will again."""
        if connection.is_lent or self._is_asked or time.monotonic() < self._not_before:
            return
        self._is_asked = True
        self._loop.call_soon_threadsafe(self.lend, connection)

    @property
    def is_free(self) -> bool:
        """Whether something is lent, and nobody reads it."""
        return bool(self._lent) and self._reader is None and not self._is_recalled

    def _tell_others(self) -> None:
        for waiter in list(self.standing_by):
            waiter.look()

    def ring(self) -> None:
        """Wake the thread that reads, unless it is this one."""
        if self._reader is not None and self._reader != threading.get_ident() and self._bell is not None:
            os.write(self._bell[1], b"!")

    def read_until(self, is_over: Callable[[], bool], deadline: float) -> bool:
        """Hand out what comes until it is over, or the time is, or the loop wants its turn.

        Whether it is over; at once if nothing is lent, or another thread reads.
        """
        if not self.is_free or not self._turn.acquire(blocking=False):
            return False
        try:
            self._uses += 1
            self._reader = threading.get_ident()
            # From here on whoever ends the waiting, or recalls, rings.
            while not is_over() and not self._is_recalled and self._lent:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._read_some(None if left_s == math.inf else left_s * 1000):
                    break
        finally:
            self._reader = None
            self._turn.release()
            if self.standing_by:
                self._tell_others()
        return is_over()

    def _read_some(self, timeout_ms: float | None) -> bool:
        """Wait for anything to come; False if the loop must look at it."""
        assert self._bell is not None
        for descriptor, _ in self._poller.poll(timeout_ms):
            if descriptor == self._bell[0]:
                os.read(descriptor, 1024)
                continue
            with InterruptsDeferred():
                if not self._lent[descriptor].read_answers():
                    self._is_recalled = True
                    self._loop.call_soon_threadsafe(self.take_back)
                    return False
        return True


class Waiter:
    """Like a lock that somebody else releases; who acquires it reads answers meanwhile, if it can."""

    __slots__ = ("_is_over", "_reading", "_signals")

    def __init__(self, reading: SharedReading) -> None:
        self._reading = reading
        self._is_over = False
        self._signals: SimpleQueue[None] = SimpleQueue()

    def release(self) -> None:
        """The waiting is over."""
        self._is_over = True
        self._signals.put(None)
        self._reading.ring()

    def look(self) -> None:
        """There may be something to read."""
        self._signals.put(None)

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for the end; False after `timeout` seconds."""
        reading = self._reading
        deadline = math.inf if timeout < 0 else time.monotonic() + timeout
        while not self._is_over and not reading.read_until(self._has_ended, deadline):
            reading.standing_by[self] = None
            try:
                # What is lent from here on is told; what was lent until here is seen.
                if not (reading.is_free and time.monotonic() < deadline) and not self._wait(deadline):
                    break
            finally:
                reading.standing_by.pop(self, None)
        return self._is_over

    def _wait(self, deadline: float) -> bool:
        try:
            self._signals.get(timeout=None if deadline == math.inf else max(0.0, deadline - time.monotonic()))
        except Empty:
            return False
        return True

    def _has_ended(self) -> bool:
        return self._is_over
