"""One partition of an internal topic that this broker coordinates: its state, timers, and parked requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.ports import RunningTimer, Timer
from odradek.coordinator.result import Answer, CoordinatorRecord, Result, StartTimer, StopTimer

NOTHING_WRITTEN = -1


class CoordinatorState(Protocol):
    """What the records of one partition add up to, and what follows from them by the clock."""

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        """Take over one record; with a producer id it counts only when that transaction is committed."""
        ...

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A producer's transaction has ended."""
        ...

    def on_loaded(self, now_ms: int) -> Result[None]:
        """Everything is replayed; set the timers of whoever is alive."""
        ...

    def on_timer(self, key: Any, now_ms: int) -> Result[None]:
        """A timer rang."""
        ...


State = TypeVar("State", bound=CoordinatorState)


class Shard(Generic[State]):
    """Owned by the runtime, on the loop. It answers nobody before `is_loaded`, and dies by `close`."""

    def __init__(self, partition: int, leader_epoch: int, state: State, timer: Timer) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = state
        self.is_loaded = False
        self.is_closed = False
        self.last_offset = NOTHING_WRITTEN
        self._timer = timer
        self._timers: dict[Hashable, RunningTimer] = {}
        self._parked: dict[Hashable, asyncio.Future[Any]] = {}

    def park(self, key: Hashable) -> asyncio.Future[Any]:
        """A place to wait for the answer under `key`; whoever waits there is sent away."""
        # Its client has given up: it asks again, or somebody took over its member id.
        self.fail([key], KafkaError("asked anew meanwhile", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        waiting = self._parked[key] = asyncio.get_running_loop().create_future()
        return waiting

    def tell(self, answers: Iterable[Answer]) -> None:
        """Give the answers to those who wait for them."""
        for key, response in answers:
            waiting = self._parked.pop(key, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(response)

    def fail(self, keys: Iterable[Hashable], error: KafkaError) -> None:
        """Send away those who wait under these keys."""
        for key in keys:
            waiting = self._parked.pop(key, None)
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)

    def set_timers(
        self, changes: Iterable[StartTimer | StopTimer], ring: Callable[[Shard[State], Hashable], None]
    ) -> None:
        """Start and stop timers; `ring` is called with the key of one that is over."""
        for change in changes:
            if isinstance(change, StartTimer) and change.lets_earlier_run and change.key in self._timers:
                continue
            running = self._timers.pop(change.key, None)
            if running is not None:
                running.cancel()
            if isinstance(change, StartTimer):
                self._timers[change.key] = self._timer.call_later(
                    change.delay_ms,
                    lambda key=change.key: self._ring(key, ring),  # type: ignore[misc]
                )

    def _ring(self, key: Hashable, ring: Callable[[Shard[State], Hashable], None]) -> None:
        self._timers.pop(key, None)
        if not self.is_closed:
            ring(self, key)

    def close(self, error: KafkaError) -> None:
        """Coordinate no more; everybody who waits is told."""
        self.is_closed = True
        for running in self._timers.values():
            running.cancel()
        self._timers.clear()
        self.fail(list(self._parked), error)
