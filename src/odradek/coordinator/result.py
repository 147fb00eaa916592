"""What a decision of a coordinator comes to: records to write, answers to give, timers to set."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Response = TypeVar("Response")


class CoordinatorRecord(NamedTuple):
    """Key and value as the internal topic keeps them; without a value the key is deleted."""

    key: bytes
    value: bytes | None


class StartTimer(NamedTuple):
    """Have the state hear of `key` after so long; an earlier timer of that key is replaced, or goes on."""

    key: Hashable
    delay_ms: int
    lets_earlier_run: bool = False


class StopTimer(NamedTuple):
    """Forget the timer of `key`, if there is one."""

    key: Hashable


class Answer(NamedTuple):
    """The response to a request that was parked under `key`."""

    key: Hashable
    response: Any


class ProducerStamp(NamedTuple):
    """The transaction that records belong to: they count only once it is committed."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Result(Generic[Response]):
    """One decision, carried out by the runtime as a whole or not at all.

    `on_written` brings the state up to date once the records are in the log; without it they are replayed,
    as they will be at the next load. `response` goes to whoever asked, unless `parks_under` names a key: then
    the caller waits until a later decision (or this one) has an `Answer` for it. Nobody hears anything before
    the records are committed.
    """

    response: Response | None = None
    records: tuple[CoordinatorRecord, ...] = ()
    on_written: Callable[[], None] | None = None
    timers: tuple[StartTimer | StopTimer, ...] = ()
    answers: tuple[Answer, ...] = ()
    parks_under: Hashable | None = None
    producer: ProducerStamp | None = None
