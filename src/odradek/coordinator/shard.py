"""One partition of an internal topic that this broker coordinates: its state, timers, and parked requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.ports import RunningTimer, Timer
from odradek.coordinator.result import CoordinatorRecord, ParkedResponse, Result, StartTimer, StopTimer

NOTHING_WRITTEN = -1


class CoordinatorState(Protocol):
    """The state of one partition, replayed from its records."""

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        """Apply one record; with a producer id it takes effect when that transaction is committed."""
        ...

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A producer's transaction has ended."""
        ...

    def on_loaded(self, now_ms: int) -> Result[None]:
        """Called after the replay; starts the timers."""
        ...

    def on_timer(self, key: Any, now_ms: int) -> Result[None]:
        """Called when a timer fires."""
        ...


State = TypeVar("State", bound=CoordinatorState)


class Shard(Generic[State]):
    """Owned by the runtime, on the loop. Serves requests from `is_loaded` until `close`."""

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
        """A future for the response under `key`; a request that waits there already fails."""
        # Its client sent the request again, or another client replaced the member.
        self.fail(
            [key], KafkaError("replaced by a later request", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        )
        waiting = self._parked[key] = asyncio.get_running_loop().create_future()
        return waiting

    def complete(self, answers: Iterable[ParkedResponse]) -> None:
        """Complete the requests that wait for these responses."""
        for key, response in answers:
            waiting = self._parked.pop(key, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(response)

    def fail(self, keys: Iterable[Hashable], error: KafkaError) -> None:
        """Fail the requests that wait under these keys."""
        for key in keys:
            waiting = self._parked.pop(key, None)
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)

    def set_timers(
        self, changes: Iterable[StartTimer | StopTimer], callback: Callable[[Shard[State], Hashable], None]
    ) -> None:
        """Start and stop timers; `callback` is called with the key of a timer that fires."""
        for change in changes:
            if isinstance(change, StartTimer) and change.lets_earlier_run and change.key in self._timers:
                continue
            running = self._timers.pop(change.key, None)
            if running is not None:
                running.cancel()
            if isinstance(change, StartTimer):
                self._timers[change.key] = self._timer.call_later(
                    change.delay_ms,
                    lambda key=change.key: self._on_timer(key, callback),  # type: ignore[misc]
                )

    def _on_timer(self, key: Hashable, callback: Callable[[Shard[State], Hashable], None]) -> None:
        self._timers.pop(key, None)
        if not self.is_closed:
            callback(self, key)

    def close(self, error: KafkaError) -> None:
        """Stop the timers and fail all parked requests."""
        self.is_closed = True
        for running in self._timers.values():
            running.cancel()
        self._timers.clear()
        self.fail(list(self._parked), error)
