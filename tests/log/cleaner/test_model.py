"""Random histories, cleaned at random times, beside the reference cleaner and beside the log's own model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from log.cleaner.given_compaction import COMPACTED, Left, append, batches_of, end_transaction, manager_of
from log.cleaner.reference_cleaner import Rec, Txn, Written, compact
from log.given_logs import NOW_MS, after_crash, open_log
from log.log_machine import LogMachine
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import aborted_between
from odradek.records.compression import Codec
from odradek.testing.faulty_files import FaultyFiles

pytestmark = pytest.mark.slow  # each of them takes a second or more

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.sampled_from([b"x", b"y" * 90])), min_size=1, max_size=5)
CODECS = st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP])
RETENTION_MS = 1000


class CompactionMachine(RuleBasedStateMachine):
    """Plain, idempotent and transactional producers; tombstones; crashes; cleaning whenever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(mkdtemp(prefix="odradek-compaction-"))
        self.batches: list[Written] = []
        self.sequences: dict[int, int] = {}
        self.open: dict[int, Txn] = {}
        self.now_ms = NOW_MS
        self.log: PartitionLog

    @initialize(segment_bytes=st.integers(500, 3000))
    def create(self, segment_bytes: int) -> None:
        self.config = COMPACTED.replace(
            internal_segment_bytes=segment_bytes, delete_retention_ms=RETENTION_MS
        )
        self.log = open_log(self.directory / "orders-0", self.config, files=FaultyFiles())

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    # What can be done

    @rule(pairs=PAIRS, codec=CODECS, producer_id=st.sampled_from([-1, 1, 2]))
    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int) -> None:
        self.write(pairs, codec, producer_id, None)

    @rule(pairs=PAIRS, codec=CODECS, producer_id=st.sampled_from([11, 12]))
    def append_in_transaction(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int
    ) -> None:
        self.write(pairs, codec, producer_id, self.open.setdefault(producer_id, Txn()))

    def write(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer_id: int, txn: Txn | None
    ) -> None:
        producer = (-1, -1, -1)
        if producer_id >= 0:
            producer = (producer_id, 0, self.sequences.get(producer_id, 0))
            self.sequences[producer_id] = producer[2] + len(pairs)
        base = append(
            self.log,
            pairs,
            codec=codec,
            producer=producer,
            is_transactional=txn is not None,
            now_ms=self.now_ms,
        )
        records: list[Rec] = [
            (base + index, self.now_ms + index, key, value) for index, (key, value) in enumerate(pairs)
        ]
        self.batches.append(Written(base, base + len(pairs) - 1, producer, txn, records=records))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), is_commit=st.booleans())
    def end_transaction(self, data: st.DataObject, is_commit: bool) -> None:
        producer_id = data.draw(st.sampled_from(sorted(self.open)))
        txn = self.open.pop(producer_id)
        txn.is_aborted = not is_commit
        offset = end_transaction(self.log, producer_id, is_commit=is_commit)
        marker = Written(offset, offset, (producer_id, 0, -1), txn, is_marker=True)
        marker.records = [(offset, NOW_MS, b"marker", b"")]
        self.batches.append(marker)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(passed_ms=st.sampled_from([0, 1, RETENTION_MS - 1, RETENTION_MS, 5 * RETENTION_MS]))
    def clean(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        outcome = manager_of(self.log).run(self.now_ms)
        if outcome is None:
            return
        assert outcome.problem is None
        assert outcome.statistics.end_offset <= self.log.segments.active.base_offset
        expected = compact(
            self.batches,
            start_offset=outcome.statistics.start_offset,
            end_offset=outcome.statistics.end_offset,
            now_ms=self.now_ms,
            retention_ms=RETENTION_MS,
        )
        self.batches = self.with_emptied(expected)

    def with_emptied(self, expected: list[Written]) -> list[Written]:
        """Add the batches that only keep their offsets; each must have a reason to."""
        before = {batch.base_offset: batch for batch in self.batches}
        real = batches_of(self.log)
        ends = {left.segment: left.header.last_offset for left in real}
        kept = {entry.last_offset for entry in self.log.producers.entries.values()}
        for left in real:
            if left.records:
                continue
            header = left.header
            assert header.last_offset in kept or ends[left.segment] == header.last_offset
            assert not header.has_delete_horizon
            original = before[header.base_offset]
            assert original.last_offset == header.last_offset
            expected.append(replace(original, records=[], horizon_ms=None))
        return sorted(expected, key=lambda batch: batch.base_offset)

    @rule()
    def clean_twice(self) -> None:
        self.clean(0)
        once = batches_of(self.log)
        assert manager_of(self.log).run(self.now_ms) is None
        assert batches_of(self.log) == once

    @rule()
    def forget_the_checkpoint_and_clean(self) -> None:
        """Everything counts as dirty again; what is clean must come out the same."""
        (self.directory / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        self.clean(0)

    @rule()
    def crash(self) -> None:
        self.log.release()
        known = after_crash(0, self.log.high_watermark)
        for snapshot in (self.directory / "orders-0").glob("*.snapshot"):
            snapshot.unlink()
        self.log = open_log(
            self.directory / "orders-0", self.config, checkpoints=known, files=FaultyFiles(), now_ms=NOW_MS
        )

    # What must hold

    @invariant()
    def the_log_has_what_the_reference_has(self) -> None:
        if hasattr(self, "log"):
            assert [reported(left) for left in batches_of(self.log)] == [expected(b) for b in self.batches]

    @invariant()
    def producers_go_on_where_they_were(self) -> None:
        if hasattr(self, "log"):
            for producer_id, sequence in self.sequences.items():
                assert self.log.producers.entries[producer_id].last_sequence == sequence - 1
            assert set(self.log.producers.ongoing.values()) == set(self.open)

    @invariant()
    def aborted_records_that_are_left_are_returned_to_readers(self) -> None:
        if hasattr(self, "log"):
            aborted = aborted_between(self.log.segments, 0, self.log.log_end_offset)
            for batch in self.batches:
                if batch.is_aborted and batch.records:
                    assert any(
                        txn.producer_id == batch.producer[0]
                        and txn.first_offset <= batch.base_offset < txn.last_offset
                        for txn in aborted
                    )


def reported(left: Left) -> tuple[object, ...]:
    header = left.header
    return (
        header.base_offset,
        header.last_offset,
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.is_control,
        header.base_timestamp_ms if header.has_delete_horizon else None,
        [(r.offset, r.timestamp_ms, r.key, r.value) for r in left.records]
        if not header.is_control
        else len(left.records),
    )


def expected(batch: Written) -> tuple[object, ...]:
    return (
        batch.base_offset,
        batch.last_offset,
        batch.producer,
        batch.is_marker,
        batch.horizon_ms,
        batch.records if not batch.is_marker else len(batch.records),
    )


TestCompactionAgainstReference = CompactionMachine.TestCase
TestCompactionAgainstReference.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.slow
class TestCompactionAgainstReferenceForLonger(CompactionMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


class CompactedLogMachine(LogMachine):
    """All that can be done to a log, and compaction."""

    config = LogMachine.config.replace(cleanup_policy=("compact", "delete"), min_cleanable_dirty_ratio=0.0)

    @rule()
    def clean(self) -> None:
        outcome = manager_of(self.log).run(self.now_ms)
        if outcome is None:
            return
        assert outcome.problem is None
        start, end = outcome.statistics.start_offset, outcome.statistics.end_offset
        last = {r.key: r.offset for r in self.model.records if start <= r.offset < end}
        self.model.records = [
            r for r in self.model.records if r.offset >= end or r.offset >= last.get(r.key, 0)
        ]
        self.model.batch_ends = [0, *(left.header.next_offset for left in batches_of(self.log))]

    def compare(self, found: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> None:
        # A batch that begins below the log start is read whole.
        assert found == expected

    @invariant()
    def epochs_end_where_the_model_says(self) -> None:
        """An epoch ends where the next one begins, whether its last record is left or not."""
        epochs = sorted({record.leader_epoch for record in self.model.visible()})
        for epoch in epochs:
            last = max(r.offset for r in self.model.visible() if r.leader_epoch == epoch)
            assert self.log.end_offset_for_epoch(epoch).end_offset > last


TestCompactedLogAgainstModel = CompactedLogMachine.TestCase
TestCompactedLogAgainstModel.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


@pytest.mark.slow
class TestCompactedLogAgainstModelForLonger(CompactedLogMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
