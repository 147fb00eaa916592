"""Bugs that a broker could have, planted in the running code: the simulation must find each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from odradek.broker.requests.waiting import purgatory
from odradek.cluster.controller.fenced_store import FencedStore
from odradek.common.error_codes import ErrorCode
from odradek.coordination.store import Operation, OperationResult
from odradek.replication.follower import fetcher
from odradek.replication.isr_changes import IsrChanges
from odradek.replication.replica_manager import ReplicaManager


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


PLANTED_BUGS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    planted.__name__: planted
    for planted in (
        truncate_to_high_watermark,
        forget_the_controller_fence,
        adopt_logs_by_name,
        append_beside_a_new_epoch,
        acknowledge_after_the_epoch,
        shrink_the_isr_alone,
    )
}
