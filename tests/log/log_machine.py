"""A log beside a list of records: after every operation both must have the same content.

Subclass it to add what else can be done to a log (compaction), with `model.keep` to say what may be missing
then: an offset never gets another record, and a record is only missing where the model allows it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from log.given_logs import NOW_MS, SMALL, after_clean_stop, after_crash, open_log, read_all
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import Isolation
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.kernels.record_objects import Record


@dataclass
class ModelRecord:
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    leader_epoch: int


@dataclass
class ModelLog:
    """The simplest log there is."""

    records: list[ModelRecord] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    batch_ends: list[int] = field(default_factory=lambda: [0])

    def append(self, records: list[ModelRecord]) -> None:
        self.records += records
        self.log_end_offset = records[-1].offset + 1
        self.batch_ends.append(self.log_end_offset)

    def truncate_to(self, offset: int) -> None:
        end = max(end for end in self.batch_ends if end <= offset)
        self.records = [record for record in self.records if record.offset < end]
        self.batch_ends = [one for one in self.batch_ends if one <= end]
        self.log_end_offset = end
        self.high_watermark = min(self.high_watermark, end)

    def delete_up_to(self, offset: int) -> None:
        self.log_start_offset = max(self.log_start_offset, offset)
        self.high_watermark = max(self.high_watermark, self.log_start_offset)

    def visible(self) -> list[ModelRecord]:
        return [record for record in self.records if record.offset >= self.log_start_offset]


class LogMachine(RuleBasedStateMachine):
    """Append, read, roll, truncate, delete, flush, reopen after a clean stop or a crash."""

    config = SMALL.replace(internal_segment_bytes=1200, retention_bytes=3000)

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(mkdtemp(prefix="odradek-model-"))
        self.model = ModelLog()
        self.log: PartitionLog
        self.leader_epoch = 0
        self.now_ms = NOW_MS

    @initialize()
    def open(self) -> None:
        self.log = open_log(self.directory / "log", self.config)

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    # What can be done

    @rule(
        keys=st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), min_size=1, max_size=5),
        size=st.integers(0, 180),
        codec=st.sampled_from(Codec),
        lateness_ms=st.integers(0, 5000),
    )
    def append(self, keys: list[bytes], size: int, codec: Codec, lateness_ms: int) -> None:
        self.now_ms += 1000
        base = self.log.log_end_offset
        made = [
            ModelRecord(
                base + index,
                self.now_ms - lateness_ms + index,
                key,
                b"%d:" % (base + index) + b"x" * size,
                self.leader_epoch,
            )
            for index, key in enumerate(keys)
        ]
        batch = build_batch(
            [Record(r.offset - base, r.timestamp_ms, r.key, r.value) for r in made], codec=codec
        )
        info = self.log.append_as_leader(batch, self.leader_epoch, now_ms=self.now_ms)
        assert (info.base_offset, info.last_offset) == (made[0].offset, made[-1].offset)
        self.model.append(made)

    @rule(count=st.integers(1, 20))
    def append_many(self, count: int) -> None:
        for _ in range(count):
            self.append([b"a", b"b"], 150, Codec.NONE, 0)

    @rule()
    def new_leader(self) -> None:
        self.leader_epoch += 1
        self.log.assign_leader_epoch(self.leader_epoch)

    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        # A high watermark is some replica's log end, so it never lies inside a batch.
        ends = [end for end in self.model.batch_ends if end >= self.model.high_watermark]
        self.model.high_watermark = ends[int(share * (len(ends) - 1))] if ends else self.model.high_watermark
        assert self.log.update_high_watermark(self.model.high_watermark) == self.model.high_watermark

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        low, high = self.model.high_watermark, self.model.log_end_offset
        target = max(low + int((high - low) * share), self.model.log_start_offset)
        self.log.truncate_to(target, now_ms=self.now_ms)
        self.model.truncate_to(target)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        low, high = self.model.log_start_offset, self.model.high_watermark
        target = low + int((high - low) * share)
        assert self.log.delete_records(target) == target
        self.model.delete_up_to(target)

    @rule()
    def enforce_retention(self) -> None:
        before = self.log.log_start_offset
        self.log.enforce_retention(self.now_ms)
        assert before <= self.log.log_start_offset <= max(before, self.model.high_watermark)
        self.model.delete_up_to(self.log.log_start_offset)

    @rule()
    def flush(self) -> None:
        self.log.flush(self.now_ms)
        assert self.log.recovery_point == self.model.log_end_offset

    @rule()
    def reopen_after_a_clean_stop(self) -> None:
        self.log.close(self.now_ms)
        self.reopen(is_clean=True)

    @rule()
    def reopen_after_a_crash(self) -> None:
        self.log.release()
        self.reopen(is_clean=False)

    def reopen(self, *, is_clean: bool) -> None:
        known = after_clean_stop(self.log)
        if not is_clean:
            known = after_crash(known.recovery_point, known.high_watermark, known.log_start_offset)
        self.log = open_log(self.directory / "log", self.config, checkpoints=known, now_ms=self.now_ms)

    # What can be asked

    @precondition(lambda self: self.model.log_end_offset > self.model.log_start_offset)
    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 3000), isolation=st.sampled_from(Isolation))
    def read(self, share: float, max_bytes: int, isolation: Isolation) -> None:
        start, end = self.model.log_start_offset, self.model.log_end_offset
        offset = start + int((end - start) * share)
        limit = end if isolation is Isolation.LOG_END else self.model.high_watermark
        part = self.log.read(offset, max_bytes, isolation=isolation).range
        expected = self.first_end_after(offset)
        if part is None:
            assert expected is None or expected > limit
            return
        headers = [header for _, header in iterate_headers(part.read())]
        assert part.length <= max_bytes or len(headers) == 1
        assert headers[0].next_offset == expected
        assert headers[-1].next_offset <= limit

    def first_end_after(self, offset: int) -> int | None:
        return next((end for end in self.model.batch_ends if end > offset), None)

    @rule(shift_ms=st.integers(-10_000, 200_000))
    def look_up_time(self, shift_ms: int) -> None:
        wanted = NOW_MS + shift_ms
        found = self.log.offset_for_timestamp(wanted)
        expected = next((r for r in self.model.visible() if r.timestamp_ms >= wanted), None)
        assert (found and (found.offset, found.timestamp_ms, found.leader_epoch)) == (
            expected and (expected.offset, expected.timestamp_ms, expected.leader_epoch)
        )

    @rule()
    def look_up_greatest_time(self) -> None:
        found = self.log.offset_of_max_timestamp()
        visible = self.model.visible()
        expected = max(visible, key=lambda r: (r.timestamp_ms, -r.offset), default=None)
        if expected is not None and found is not None:
            assert (found.offset, found.timestamp_ms) == (expected.offset, expected.timestamp_ms)

    # What must hold

    @invariant()
    def the_log_tells_what_the_model_tells(self) -> None:
        model, log = self.model, self.log
        assert log.log_end_offset == model.log_end_offset
        assert log.log_start_offset == model.log_start_offset
        assert log.high_watermark == model.high_watermark
        found = [(r.offset, r.timestamp_ms, r.key, r.value) for r in read_all(log, max_bytes=2000)]
        self.compare(found, [(r.offset, r.timestamp_ms, r.key, r.value) for r in model.visible()])

    def compare(self, found: list[tuple[object, ...]], expected: list[tuple[object, ...]]) -> None:
        assert found == expected

    @invariant()
    def epochs_end_where_the_model_says(self) -> None:
        for epoch in {record.leader_epoch for record in self.model.visible()}:
            last = max(r.offset for r in self.model.visible() if r.leader_epoch == epoch)
            end = self.log.end_offset_for_epoch(epoch)
            assert end.epoch == epoch
            assert end.end_offset == last + 1
