# cython: annotation_typing=False
"""Direct reading: a thread that waits for a response reads it from the socket itself.

Waking the event loop for a response, and then the thread that waits for it, takes longer than everything else
a small response needs. So the loop stops reading a connection whose responses are waited for again and again,
and resumes when none has come for a while. The client setting `odradek.direct.read` turns this off.

| direct reading | the loop | a waiting thread |
| --- | --- | --- |
| active | checks every 10 ms whether responses still come | waits for bytes or a wakeup, and reads |
| stopped | reads | is woken by the loop |

The waiting thread handles ordinary responses only. Errors, the end of the connection and all other responses
are passed to the loop.

Compiled by Cython (direct_read.pxd has the C types), or interpreted as is.
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
    from cython.cimports.odradek.net.readiness import READABLE, WAKEUP, wait_for_bytes
    from cython.cimports.odradek.net.socket_calls import receive
else:
    from odradek.net.readiness import READABLE, WAKEUP, wait_for_bytes
    from odradek.net.socket_calls import receive

_CHECK_INTERVAL_S = 0.01
"""How often the loop checks a connection that is read directly."""
_MAX_WAIT_MS = 60_000
_WAKEUP_BYTE = b"!"
_MAX_WAKEUP_BYTES = 1024


class DirectReadOwner:
    """The methods of a connection that its direct reader calls."""

    def dispatch(self, frame: memoryview) -> None:
        """Any thread: handle a complete response. BadResponse if no request is waiting for it."""
        raise NotImplementedError

    def fail(self, reason: str, is_no_kafka: bool = False) -> None:
        """On the loop: close the connection because of an error."""
        raise NotImplementedError

    def eof_received(self) -> None:
        """On the loop: the broker has closed its side."""
        raise NotImplementedError


class DirectRead:
    """The socket of one connection, and a pipe that wakes its reader. Created and started on the loop."""

    def __init__(
        self,
        owner: DirectReadOwner,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        assembler: ResponseAssembler,
        descriptor: int,
    ) -> None:
        """`descriptor` is the socket of the transport; it is duplicated."""
        self.is_active = False
        self.responses = 0
        """How many responses waiting threads have read."""
        self.wait_lock = threading.Lock()
        """Held by the one thread that waits: a second one would not notice what the first one reads."""
        self.deferred: ResponseHandler | None = None
        """Runs when its thread waits again, or on the loop if that does not happen soon."""
        self._owner: DirectReadOwner | None = owner
        self._idle_timer: asyncio.TimerHandle | None = None
        self._loop = loop
        self._transport = transport
        self._assembler = assembler
        # Held while reading, and by the loop while it stops direct reading.
        self._read_lock = threading.Lock()
        self._descriptor = self._wakeup_fd = self._wakeup_write_fd = -1
        self._descriptor = os.dup(descriptor)
        self._wakeup_fd, self._wakeup_write_fd = os.pipe()
        os.set_blocking(self._wakeup_fd, False)
        os.set_blocking(self._wakeup_write_fd, False)

    def __del__(self) -> None:
        for descriptor in (self._descriptor, self._wakeup_fd, self._wakeup_write_fd):
            if descriptor >= 0:
                os.close(descriptor)

    # On the loop.

    def start(self, max_idle_s: float) -> None:
        """Let waiting threads read until no response has come for `max_idle_s`."""
        if not self.is_active:
            self._transport.pause_reading()
            self.is_active = True
            self._schedule_check(0.0, max_idle_s)

    def _schedule_check(self, idle_s: float, max_idle_s: float) -> None:
        self._idle_timer = self._loop.call_later(
            _CHECK_INTERVAL_S, self._check_idle, self.responses, idle_s, max_idle_s
        )

    def _check_idle(self, responses: int, idle_s: float, max_idle_s: float) -> None:
        idle_s = idle_s + _CHECK_INTERVAL_S if self.responses == responses else 0.0
        if idle_s >= max_idle_s:
            self.stop()
            return
        if idle_s:
            self._run_deferred(False)
            if not self.is_active:
                return  # a request was sent
        self._schedule_check(idle_s, max_idle_s)

    def stop(self) -> None:
        """Read on the loop again, if direct reading is active."""
        if not self.is_active:
            return
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        with self._read_lock:
            self.is_active = False
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self.release()
        self._run_deferred(False)

    def close(self) -> None:
        """The connection is closed."""
        self.stop()
        self._owner = None

    # Any thread.

    def request_stop(self) -> None:
        """Have the loop stop direct reading."""
        if self.is_active:
            self._loop.call_soon_threadsafe(self.stop)

    def release(self) -> None:
        """Wake the waiting thread, or the next one that waits. Named like the method of a lock."""
        with suppress(BlockingIOError):  # the pipe is full: a wakeup is pending
            os.write(self._wakeup_write_fd, _WAKEUP_BYTE)

    def wait(self, timeout_s: float) -> None:
        """Run what was deferred; wait for bytes, a wakeup or the timeout; dispatch complete responses."""
        if self.deferred is not None:
            self._run_deferred(True)
        # Rounded up, so that waiting until a deadline does not spin during the last millisecond.
        timeout_ms = min(timeout_s * 1000 + 0.999, _MAX_WAIT_MS)
        ready = wait_for_bytes(self._descriptor, self._wakeup_fd, int(timeout_ms))
        if ready & WAKEUP:
            self._drain_wakeups()
        if ready & READABLE:
            self.read_available()

    def read_available(self) -> None:
        """Dispatch the responses that have arrived, if direct reading is active and no other thread reads."""
        if not self.is_active or not self._read_lock.acquire(False):
            return
        try:
            if self.is_active:
                self._read()
        finally:
            self._read_lock.release()

    def _drain_wakeups(self) -> None:
        with suppress(BlockingIOError):  # another thread has read them
            os.read(self._wakeup_fd, _MAX_WAKEUP_BYTES)

    def _run_deferred(self, is_direct: bool) -> None:
        with self._read_lock:
            handler, self.deferred = self.deferred, None
        # Without the lock: the handler may send a request on the loop, which stops direct reading.
        if handler is None:
            return
        try:
            handler.run_deferred(is_direct)
        except BaseException as error:
            # KeyboardInterrupt, for example: the waiting caller must not wait forever.
            self._loop.call_soon_threadsafe(handler.set_exception, error)
            raise

    def _read(self) -> None:
        owner = self._owner
        if owner is None:
            return
        try:
            count = receive(self._descriptor, self._assembler.buffer())
        except OSError as error:
            self._stop_and_call(owner.fail, error.strerror or str(error))
            return
        if count == 0:
            self._stop_and_call(owner.eof_received)
        elif count > 0:
            try:
                for frame in self._assembler.filled(count):
                    self.responses += 1
                    owner.dispatch(frame)
            except BadResponse as problem:
                self._stop_and_call(owner.fail, str(problem), True)

    def _stop_and_call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop stop direct reading, and then call a function."""
        self._loop.call_soon_threadsafe(self.stop)
        self._loop.call_soon_threadsafe(function, *arguments)
