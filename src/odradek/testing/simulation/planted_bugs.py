"""Bugs that a broker could have, planted in the running code: the simulation must find each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from odradek.broker.requests import transaction_verification
from odradek.broker.requests.transaction_verification import TransactionOperation
from odradek.broker.requests.waiting import purgatory
from odradek.cluster.controller.fenced_store import FencedStore
from odradek.common.error_codes import ErrorCode
from odradek.coordination.store import Operation, OperationResult
from odradek.log.partition.log_writer import LogWriter
from odradek.log.partition.producer_replay import markers_of
from odradek.replication.follower import fetcher
from odradek.replication.isr_changes import IsrChanges
from odradek.replication.replica_manager import ReplicaManager
from odradek.transactions.markers import MarkerWriter, PendingEnd


@contextlib.contextmanager
def _patched(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def truncate_to_high_watermark() -> contextlib.AbstractContextManager[None]:
    """A follower truncates to its own high watermark before it fetches (Kafka before KIP-101)."""

    def first_truncation(latest_epoch: int, log_end_offset: int, high_watermark: int) -> int | None:
        return high_watermark if log_end_offset > high_watermark else None

    return _patched(fetcher, "first_truncation", first_truncation)


def forget_the_controller_fence() -> contextlib.AbstractContextManager[None]:
    """A controller writes without checking that its epoch is still the highest."""

    async def write(self: FencedStore, operations: Sequence[Operation]) -> list[OperationResult]:
        return await self.store.multi(operations)

    return _patched(FencedStore, "write", write)


def adopt_logs_by_name() -> contextlib.AbstractContextManager[None]:
    """A log is served although it belongs to a deleted topic of the same name."""
    return _patched(ReplicaManager, "log_of_other_topic", lambda self, partition, topic_id: None)


def append_beside_a_new_epoch() -> contextlib.AbstractContextManager[None]:
    """Appends in the old leader epoch go on while the new one is written to the disk."""
    begin_setup: Callable[..., Any] = ReplicaManager.begin_setup

    def begin_without_suspending(self: ReplicaManager, *arguments: Any, **options: Any) -> Any:
        setup = begin_setup(self, *arguments, **options)
        partition = self.partitions.get(setup.topic_partition)
        if partition is not None:
            partition.resume_appends()
        return setup

    return _patched(ReplicaManager, "begin_setup", begin_without_suspending)


def acknowledge_after_the_epoch() -> contextlib.AbstractContextManager[None]:
    """A produce that waits when its leader epoch ends is acknowledged."""
    return _patched(purgatory, "_NOT_LEADER", ErrorCode.NONE)


def shrink_the_isr_alone() -> contextlib.AbstractContextManager[None]:
    """A leader removes followers from the ISR without asking the controller."""
    propose: Callable[..., None] = IsrChanges.propose

    def propose_or_shrink(self: IsrChanges, partition: Any, change: Any) -> None:
        if len(change.isr) < len(partition.isr):
            partition.isr_changed(change.isr, change.partition_epoch + 1)
        else:
            propose(self, partition, change)

    return _patched(IsrChanges, "propose", propose_or_shrink)


def write_markers_unchecked() -> contextlib.AbstractContextManager[None]:
    """A marker counts whatever its producer epoch and its coordinator epoch are."""

    def check_producers(
        self: LogWriter, payload: Any, headers: Sequence[Any], transaction_version: int
    ) -> list[Any]:
        markers = markers_of(payload, headers)
        for header, marker in zip(headers, markers, strict=True):
            if marker is None and header.has_producer_id:
                self.producers.check(header, checks_sequence=False)
        return markers

    return _patched(LogWriter, "_check_producers", check_producers)


def leave_out_verification() -> contextlib.AbstractContextManager[None]:
    """A leader does not ask whether a partition is part of the transaction (Kafka before KIP-890)."""
    ask: Callable[..., Any] = transaction_verification.ask_coordinator

    async def ask_only_to_add(
        services: Any, transactional_id: str, producer: Any, operation: Any, partitions: Any
    ) -> Any:
        if operation is TransactionOperation.ADD:
            return await ask(services, transactional_id, producer, operation, partitions)
        return dict.fromkeys(partitions, ErrorCode.NONE)

    return _patched(transaction_verification, "ask_coordinator", ask_only_to_add)


def complete_before_markers() -> contextlib.AbstractContextManager[None]:
    """A transaction is complete as soon as its end is decided; its markers follow a while later."""
    write: Callable[..., None] = MarkerWriter.write

    def write_later(self: MarkerWriter, end: PendingEnd) -> None:
        end.on_written()
        end.on_written = lambda: None
        asyncio.get_running_loop().call_later(0.5, write, self, end)

    return _patched(MarkerWriter, "write", write_later)


PLANTED_BUGS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    planted.__name__: planted
    for planted in (
        truncate_to_high_watermark,
        forget_the_controller_fence,
        adopt_logs_by_name,
        append_beside_a_new_epoch,
        acknowledge_after_the_epoch,
        shrink_the_isr_alone,
        write_markers_unchecked,
        leave_out_verification,
        complete_before_markers,
    )
}
BUGS_OF_TRANSACTIONS = frozenset(
    {"write_markers_unchecked", "leave_out_verification", "complete_before_markers"}
)
"""Those that only schedules with transactions can find."""

FOUND_BY: dict[str, tuple[int, ...]] = {
    "acknowledge_after_the_epoch": (2, 6),
    "complete_before_markers": (1, 2),
    "leave_out_verification": (1, 2),
    "truncate_to_high_watermark": (8,),
    "write_markers_unchecked": (5, 7),
}
"""Seeds whose schedules of four faults find a bug; one is enough. A bug that takes hundreds has none."""
