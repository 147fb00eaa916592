"""The result of a coordinator operation: records to write, responses to send, timers to set."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Response = TypeVar("Response")


class CoordinatorRecord(NamedTuple):
    """Key and value of a record; without a value the key is deleted."""

    key: bytes
    value: bytes | None


class StartTimer(NamedTuple):
    """Call `on_timer` with `key` after `delay_ms`; a running timer of that key is replaced, or kept."""

    key: Hashable
    delay_ms: int
    lets_earlier_run: bool = False


class StopTimer(NamedTuple):
    """Stop the timer of `key`, if there is one."""

    key: Hashable


class ParkedResponse(NamedTuple):
    """The response to a request that is parked under `key`."""

    key: Hashable
    response: Any


class ProducerStamp(NamedTuple):
    """The transaction of the records: they take effect when it is committed."""

    producer_id: int
    producer_epoch: int


class TransactionMarker(NamedTuple):
    """The end of a producer's transaction, as the transaction coordinator decided it."""

    producer: ProducerStamp
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


@dataclass(frozen=True, slots=True)
class Result(Generic[Response]):
    """One operation, applied by the runtime as a whole or not at all.

    `on_written` updates the state once the records are in the log; without it the records are replayed, as
    they will be at the next load. `response` is returned to the caller, unless `parked_under` names a key:
    then the caller waits until a later operation (or this one) has a `ParkedResponse` for it. Responses are
    sent only after the records are committed.
    """

    response: Response | None = None
    records: tuple[CoordinatorRecord, ...] = ()
    on_written: Callable[[], None] | None = None
    timers: tuple[StartTimer | StopTimer, ...] = ()
    parked_responses: tuple[ParkedResponse, ...] = ()
    parked_under: Hashable | None = None
    producer: ProducerStamp | None = None
