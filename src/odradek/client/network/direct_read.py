# cython: annotation_typing=False
"""A connection on loan: a thread that waits for an answer reads it from the socket itself.

A loop that reads an answer and the thread that waits for it wake one another, which for a small answer takes
longer than all the rest. So the loop lends a connection whose answers somebody waits for again and again, and
takes it back when none have come for a while.

|  | the loop | a thread that waits |
| --- | --- | --- |
| on loan | looks after it now and then | waits for bytes or for the bell, and reads |
| otherwise | reads | is woken by the loop |

What such a thread cannot do is left to the loop: answers that are not as usual, errors, the end.

Compiled by Cython (loan.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress

import cython

from odradek.client.network.in_flight import ResponseHandler
from odradek.client.network.responses import BadResponse, ResponseAssembler

if cython.compiled:
    from cython.cimports.odradek.net.readiness import BELL, BYTES, wait_for_bytes
    from cython.cimports.odradek.net.socket_calls import receive
else:
    from odradek.net.readiness import BELL, BYTES, wait_for_bytes
    from odradek.net.socket_calls import receive

_LOOK_S = 0.01
"""How often the loop looks after what is on loan."""
_LONGEST_WAIT_MS = 60_000
_A_RING = b"!"
_MANY_RINGS = 1024


class DirectReadOwner:
    """A connection, as far as its loan is concerned."""

    def hand_over(self, frame: memoryview) -> None:
        """Any thread: an answer is complete. BadResponse if nobody asked for it."""
        raise NotImplementedError

    def break_off(self, reason: str, is_no_kafka: bool = False) -> None:
        """On the loop: the connection is of no use any more."""
        raise NotImplementedError

    def eof_received(self) -> None:
        """On the loop: the broker will send no more."""
        raise NotImplementedError


class DirectRead:
    """The socket of one connection, and a bell. Made, lent and taken back on the loop."""

    def __init__(
        self,
        lender: DirectReadOwner,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        assembler: ResponseAssembler,
        descriptor: int,
    ) -> None:
        """`descriptor` is the socket of the transport; it gets a number of our own, closed with us."""
        self.is_lent = False
        self.answers = 0
        """That were read by a thread that waits, ever."""
        self.waiting = threading.Lock()
        """For the one thread that waits: another one would not be told what this one reads."""
        self.put_off: ResponseHandler | None = None
        """Who has more to do, but not before its thread waits again, or the loop finds that it does not."""
        self._lender: DirectReadOwner | None = lender
        self._next_look: asyncio.TimerHandle | None = None
        self._loop = loop
        self._transport = transport
        self._assembler = assembler
        # Held by whoever reads, and by the loop when it takes back.
        self._reading = threading.Lock()
        self._descriptor = self._bell = self._bell_rope = -1
        self._descriptor = os.dup(descriptor)
        self._bell, self._bell_rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._bell_rope, False)

    def __del__(self) -> None:
        for descriptor in (self._descriptor, self._bell, self._bell_rope):
            if descriptor >= 0:
                os.close(descriptor)

    # On the loop.

    def lend(self, longest_lull_s: float) -> None:
        """Leave reading to a thread that waits, until no answer has come for so long."""
        if not self.is_lent:
            self._transport.pause_reading()
            self.is_lent = True
            self._look_again(0.0, longest_lull_s)

    def _look_again(self, lull_s: float, longest_lull_s: float) -> None:
        self._next_look = self._loop.call_later(_LOOK_S, self._look, self.answers, lull_s, longest_lull_s)

    def _look(self, answers: int, lull_s: float, longest_lull_s: float) -> None:
        lull_s = lull_s + _LOOK_S if self.answers == answers else 0.0
        if lull_s >= longest_lull_s:
            self.take_back()
            return
        if lull_s:
            self._go_on(False)
            if not self.is_lent:
                return  # there was something to be sent
        self._look_again(lull_s, longest_lull_s)

    def take_back(self) -> None:
        """Read on the loop again, if it is lent."""
        if not self.is_lent:
            return
        if self._next_look is not None:
            self._next_look.cancel()
        with self._reading:
            self.is_lent = False
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self.release()
        self._go_on(False)

    def end(self) -> None:
        """The connection has ended."""
        self.take_back()
        self._lender = None

    # Any thread.

    def ask_back(self) -> None:
        """Have the loop take it back."""
        if self.is_lent:
            self._loop.call_soon_threadsafe(self.take_back)

    def release(self) -> None:
        """Ring the bell: whoever waits, or begins to, waits no more. (So is a lock released.)"""
        with suppress(BlockingIOError):  # it rings since long
            os.write(self._bell_rope, _A_RING)

    def wait(self, timeout_s: float) -> None:
        """Do what was put off; wait for bytes, the bell or the end of the time; hand out complete answers."""
        if self.put_off is not None:
            self._go_on(True)
        # Rounded up: who waits again and again until a moment must not do so for nothing.
        timeout_ms = min(timeout_s * 1000 + 0.999, _LONGEST_WAIT_MS)
        ready = wait_for_bytes(self._descriptor, self._bell, int(timeout_ms))
        if ready & BELL:
            self._silence()
        if ready & BYTES:
            self.catch_up()

    def catch_up(self) -> None:
        """If it is lent and nobody else is about it, hand out the answers that are there."""
        if not self.is_lent or not self._reading.acquire(False):
            return
        try:
            if self.is_lent:
                self._read()
        finally:
            self._reading.release()

    def _silence(self) -> None:
        with suppress(BlockingIOError):  # another thread was quicker
            os.read(self._bell, _MANY_RINGS)

    def _go_on(self, is_on_loan: bool) -> None:
        with self._reading:
            taker, self.put_off = self.put_off, None
        # Without the lock: whoever goes on may have something to send, for which the loop takes back.
        if taker is None:
            return
        try:
            taker.go_on(is_on_loan)
        except BaseException as error:
            # Ctrl-C, perhaps: whoever waits must not wait for ever.
            self._loop.call_soon_threadsafe(taker.set_exception, error)
            raise

    def _read(self) -> None:
        lender = self._lender
        if lender is None:
            return
        try:
            count = receive(self._descriptor, self._assembler.room())
        except OSError as error:
            self._leave(lender.break_off, error.strerror or str(error))
            return
        if count == 0:
            self._leave(lender.eof_received)
        elif count > 0:
            try:
                for frame in self._assembler.filled(count):
                    self.answers += 1
                    lender.hand_over(frame)
            except BadResponse as problem:
                self._leave(lender.break_off, str(problem), True)

    def _leave(self, function: Callable[..., object], *arguments: object) -> None:
        """Leave something to the loop, which must read by itself again."""
        self._loop.call_soon_threadsafe(self.take_back)
        self._loop.call_soon_threadsafe(function, *arguments)
