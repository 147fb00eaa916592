"""An event loop over virtual time, with simulated processes that can be killed and stopped.

The clock jumps to the next timer when nothing is left to run. Every callback carries, in its context, the
process that scheduled it: callbacks of a killed process never run, those of a stopped one when it resumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from odradek.common.simulated_clock import set_simulated_seconds

Result = TypeVar("Result")

START_MS = 1_700_000_000_000
"""Wall-clock time at the beginning of a simulation."""


class SimulatedProcess:
    """One run of a simulated operating-system process, from its start to its death.

    Owned by the simulation. Everything scheduled by code that runs `inside` the process belongs to it.
    """

    def __init__(self, name: str, clock_skew_ms: int = 0) -> None:
        self.name = name
        self.clock_skew_ms = clock_skew_ms
        self.is_dead = False
        self.is_stopped = False
        self._held: list[tuple[Callable[..., object], tuple[Any, ...], Context | None]] = []
        self.context = copy_context()
        self.context.run(_CURRENT.set, self)

    def __repr__(self) -> str:
        return f"SimulatedProcess({self.name})"

    def now_ms(self) -> int:
        """The wall clock as this process sees it."""
        return START_MS + self.clock_skew_ms + int(asyncio.get_running_loop().time() * 1000)

    def kill(self) -> None:
        """Let it die at this moment (kill -9): none of its code runs again."""
        self.is_dead = True
        self._held.clear()

    def stop(self) -> None:
        """Let none of its code run until `resume` (SIGSTOP)."""
        self.is_stopped = True

    def resume(self) -> None:
        """Run what should have run meanwhile, then go on (SIGCONT)."""
        self.is_stopped = False
        held, self._held = self._held, []
        loop = asyncio.get_running_loop()
        for callback, arguments, context in held:
            loop.call_soon(callback, *arguments, context=context)

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Run a callback inside of this process, as the arrival of a message does."""
        asyncio.get_running_loop().call_soon(callback, *arguments, context=self.context.copy())

    def create_task(self, coroutine: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run a coroutine inside of this process."""
        return asyncio.get_running_loop().create_task(coroutine, context=self.context.copy())

    def run_or_hold(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], context: Context | None
    ) -> None:
        """Called by the loop when it is the callback's turn."""
        if self.is_stopped:
            self._held.append((callback, arguments, context))
        elif not self.is_dead:
            callback(*arguments)


_CURRENT: ContextVar[SimulatedProcess | None] = ContextVar("process", default=None)


def current_process() -> SimulatedProcess | None:
    """The process that runs now; None for the simulation itself."""
    return _CURRENT.get()


def process_now_ms() -> int:
    """The wall clock of the process that runs now, or of the simulation itself."""
    process = current_process()
    if process is not None:
        return process.now_ms()
    return START_MS + int(asyncio.get_running_loop().time() * 1000)


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise AssertionError("nothing is left that could ever happen: a deadlock")
        self.now_s += max(timeout, 0.0)
        set_simulated_seconds(self.now_s)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer instead of waiting for it; no sockets, no threads."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds since the beginning of the simulation."""
        return self._jumping.now_s

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As always, on behalf of the process in the context."""
        process = _process_of(context)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        context = context or copy_context()  # a stopped process needs it later
        return super().call_soon(process.run_or_hold, callback, args, context, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As always, on behalf of the process in the context."""
        process = _process_of(context)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        context = context or copy_context()
        return super().call_at(when, process.run_or_hold, callback, args, context, context=context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """There is one thread only."""
        return self.call_soon(callback, *args, context=context)


def _process_of(context: Context | None) -> SimulatedProcess | None:
    return _CURRENT.get() if context is None else context.get(_CURRENT)


def run_in_virtual_time(scenario: Coroutine[Any, Any, Result], loop: VirtualTimeLoop | None = None) -> Result:
    """Run a coroutine to its end, in as little real time as its work takes; all other tasks are discarded."""
    loop = loop or VirtualTimeLoop()
    asyncio.set_event_loop(loop)
    set_simulated_seconds(0.0)
    try:
        return loop.run_until_complete(loop.create_task(scenario))
    finally:
        _discard_tasks(loop)
        asyncio.set_event_loop(None)
        loop.close()
        set_simulated_seconds(-1.0)


def _discard_tasks(loop: VirtualTimeLoop) -> None:
    """Tasks of killed processes can be neither awaited nor cancelled: nothing of them may run."""
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        with contextlib.suppress(BaseException):
            task.get_coro().close()
