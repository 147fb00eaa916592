"""Compaction as one would explain it, on lists of records: what the real one must agree with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

Rec = tuple[int, int, bytes, bytes | None]  # offset, timestamp, key, value


@dataclass(eq=False)
class Txn:
    """A transaction; None as long as it is open."""

    is_aborted: bool | None = None


@dataclass
class Written:
    """A batch, or a marker that ends `txn`."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int] = (-1, -1, -1)
    txn: Txn | None = None
    is_marker: bool = False
    records: list[Rec] = field(default_factory=list)
    horizon_ms: int | None = None

    @property
    def is_aborted(self) -> bool:
        return not self.is_marker and self.txn is not None and self.txn.is_aborted is True


def compact(
    batches: list[Written], *, start_offset: int, end_offset: int, now_ms: int, retention_ms: int
) -> list[Written]:
    """What is left when the log is clean up to `end_offset`; batches without records are all left out."""
    last_offsets = {
        key: offset
        for batch in batches
        if not batch.is_marker and not batch.is_aborted
        for offset, _, key, _ in batch.records
        if start_offset <= offset < end_offset
    }
    with_batches = {batch.txn for batch in batches if not batch.is_marker}
    left = []
    for batch in batches:
        if batch.base_offset >= end_offset:
            left.append(batch)
            continue
        is_expired = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
        if batch.is_marker:
            may_go = batch.txn not in with_batches
            records = [] if may_go and is_expired else batch.records
            wants_horizon = may_go
        else:
            records = [
                (offset, timestamp_ms, key, value)
                for offset, timestamp_ms, key, value in ([] if batch.is_aborted else batch.records)
                if offset >= last_offsets.get(key, 0) and not (value is None and is_expired)
            ]
            wants_horizon = any(value is None for *_, value in records)
        horizon_ms = batch.horizon_ms
        if wants_horizon and horizon_ms is None:
            horizon_ms = now_ms + retention_ms
        if records:
            left.append(replace(batch, records=records, horizon_ms=horizon_ms))
    return left
