"""The marker of a micro-batch: what the metadata of committed offsets says about the last one. No I/O.

It is committed in the transaction that has the rows: whoever sees the marker knows that the rows are there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.common.ids import TopicPartition
from odradek.spark.transactions.errors import OtherCheckpoint, fenced

_KEY = "odradek.spark"
_LETTERS_OF_A_RUN = 8
"""So much of a run's id is kept: a marker is in each partition of the source."""
_RUNS_KEPT = 9


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch: the id of the query, which its checkpoint keeps, and the number of the batch.

    `plan` is the checksum of what Spark's offset log says about the batch; None where that cannot be read.
    A repetition has the same one, and an old copy of the checkpoint another one.

    `runs` are the last starts of the query that have committed something, the newest last. A start that finds
    itself before another one has been replaced by that.
    """

    query_id: str
    batch_id: int
    plan: int | None = None
    runs: tuple[str, ...] = ()

    def of_run(self, run_id: str | None) -> MicroBatch:
        """The same, in one start of the query; without an id nobody can tell that it was replaced."""
        return replace(self, runs=() if run_id is None else (run_id[:_LETTERS_OF_A_RUN],))

    def after(self, last: MicroBatch | None) -> MicroBatch:
        """The same, with the runs that came before."""
        if last is None:
            return self
        earlier = tuple(run for run in last.runs if run not in self.runs)
        return replace(self, runs=(*earlier, *self.runs)[-_RUNS_KEPT:])

    def metadata(self) -> str:
        """The marker as the metadata of a committed offset."""
        named: dict[str, str | int] = {"query": self.query_id, "batch": self.batch_id}
        if self.plan is not None:
            named["plan"] = self.plan
        if self.runs:
            named["runs"] = " ".join(self.runs)
        return json.dumps({_KEY: named}, separators=(",", ":"))


def micro_batch_in(metadata: str) -> MicroBatch | None:
    """The micro-batch that a marker names; None if this is no marker."""
    try:
        found = json.loads(metadata)[_KEY]
        plan, runs = found.get("plan"), tuple(str(found.get("runs", "")).split())
        return MicroBatch(str(found["query"]), int(found["batch"]), None if plan is None else int(plan), runs)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def last_micro_batch(committed: Mapping[TopicPartition, OffsetAndMetadata], name: str) -> MicroBatch | None:
    """The last micro-batch that a group has markers of; OtherCheckpoint if somebody else commits there."""
    markers = {partition: micro_batch_in(row.metadata) for partition, row in committed.items()}
    foreign = [partition for partition, marker in markers.items() if marker is None]
    if foreign:
        raise OtherCheckpoint(
            f"the group {name!r} has an offset of {min(foreign)} that no exactly-once query has committed: "
            f"give the query a name that is no group of consumers, nor the source's kafka.group.id"
        )
    return max(
        (one for one in markers.values() if one is not None), key=lambda one: one.batch_id, default=None
    )


def places_of(
    last: MicroBatch | None, committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> frozenset[TopicPartition]:
    """Where the last marker is."""
    return frozenset(
        partition
        for partition, row in committed.items()
        if last is not None and micro_batch_in(row.metadata) == last
    )


def marker_rows(
    batch: MicroBatch,
    places: Collection[TopicPartition],
    written: Collection[TopicPartition],
    source_ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets that a micro-batch commits; `places` is where the marker before is.

    At least one of those gets the new one as well: a coordinator may still be completing the commit of a
    partition that it had no offset of, and such a one is not among all offsets of the group.
    Of sources that are no topics the offset is the number of micro-batches, at the first partition written.
    """
    ends = dict(source_ends)
    if not ends and not written:
        return {}
    if places and not ends.keys() & set(places):
        ends[min(places)] = batch.batch_id + 1
    if not ends:
        ends[min(written)] = batch.batch_id + 1
    return {partition: OffsetAndMetadata(offset, batch.metadata()) for partition, offset in ends.items()}


def is_committed(last: MicroBatch | None, now: MicroBatch, name: str) -> bool:
    """Whether a micro-batch is in the topics already; OtherCheckpoint if the marker does not fit it.

    FencedByOtherDriver if a later start of the query has committed.
    """
    if last is None:
        return False
    if last.query_id != now.query_id:
        raise OtherCheckpoint(
            f"the name {name!r} belongs to a query with another checkpoint (query id {last.query_id}, "
            f"micro-batch {last.batch_id}): use that checkpoint, or give this query another name; if the "
            f"other one is gone for good: odradek groups delete {name}"
        )
    if set(now.runs) & set(last.runs[:-1]):
        raise fenced(name)
    if last.batch_id > now.batch_id:
        raise OtherCheckpoint(
            f"the checkpoint of {name!r} is at micro-batch {now.batch_id}, but {last.batch_id} is committed: "
            f"it is an old copy, or another driver goes on with it"
        )
    if last.batch_id < now.batch_id:
        return False
    if None not in (last.plan, now.plan) and last.plan != now.plan:
        raise OtherCheckpoint(
            f"the checkpoint of {name!r} is at micro-batch {now.batch_id}, but another micro-batch of that "
            f"number is committed: it is an old copy, or another driver goes on with it"
        )
    return True
