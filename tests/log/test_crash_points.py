"""Whatever happens to the bytes of a file, loading finds the longest whole prefix, or says why it must not.

The damage: a file is cut, a stretch of it is zeroed or overwritten, one byte is flipped, the file is gone.
The oracle knows the batches that were written and where each lies.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log.given_logs import NOW_MS, SMALL, a_batch, after_clean_stop, after_crash, offsets_and_values, open_log
from odradek.log.errors import LogCorrupted
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import Checkpoints
from odradek.records.compression import Codec
from odradek.testing.faulty_files import Crashed, FaultyFiles

pytestmark = pytest.mark.slow  # each of them takes a second or more


@dataclass(frozen=True)
class Written:
    """A log as it was before the damage."""

    path: Path
    log: PartitionLog
    records: list[tuple[int, bytes | None]]
    segments: list[tuple[str, list[tuple[int, int, int]]]]  # name, [(position, size, base offset)]


@cache
def a_written_log() -> Written:
    path = Path(mkdtemp(prefix="odradek-crash-")) / "log"
    log = open_log(path, SMALL.replace(internal_segment_bytes=1500))
    for number in range(48):
        at = log.log_end_offset
        batch = a_batch(
            1 + number % 3,
            value=b"%d:" % at + b"x" * (20 + number * 7 % 300),
            timestamp_ms=NOW_MS + at * 1000,
            codec=Codec(number % 5),
            producer_id=number % 2,
            producer_epoch=0,
            base_sequence=sum(1 + n % 3 for n in range(number % 2, number, 2)),
        )
        log.append_as_leader(batch, number // 20, now_ms=NOW_MS + at * 1000)
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW_MS)
    segments = [
        (
            Path(segment.log.path).name,
            [(span.position, span.size, span.base_offset) for span in segment.walk()],
        )
        for segment in log.segments
    ]
    return Written(path, log, offsets_and_values(log), segments)


def damaged_copy(draw: st.DataObject, written: Written, names: list[str]) -> tuple[Path, str, int, int]:
    """A copy with one file damaged: where it is, the file, and the first and last byte that may differ."""
    target = Path(mkdtemp(dir=written.path.parent)) / "log"
    shutil.copytree(written.path, target)
    name = draw.draw(st.sampled_from(names))
    content = bytearray((target / name).read_bytes())
    if not content:
        content += b"\x07"  # an empty index can only be damaged by what should not be there
    start = draw.draw(st.integers(0, max(0, len(content) - 1)))
    how = draw.draw(st.sampled_from(["cut", "flip", "zero", "overwrite"]))
    end = len(content) - 1
    if how == "cut":
        del content[start:]
    elif how == "flip":
        content[start] ^= draw.draw(st.integers(1, 255))
        end = start
    else:
        end = draw.draw(st.integers(start, len(content) - 1))
        filler = b"\0" if how == "zero" else b"\xa5"
        content[start : end + 1] = filler * (end + 1 - start)
    (target / name).write_bytes(content)
    return target, name, start, end


def first_damaged_offset(written: Written, target: Path, name: str) -> int | None:
    """The base offset of the first batch whose bytes changed; None if the damage changed none."""
    before, after = (written.path / name).read_bytes(), (target / name).read_bytes()
    for position, size, base_offset in dict(written.segments)[name]:
        if before[position : position + size] != after[position : position + size]:
            return base_offset
    return None


def only_the_epoch_changed(written: Written, target: Path, name: str, base_offset: int) -> bool:
    """Only the batch's leader epoch differs: no CRC covers it, and no record is in it."""
    before, after = (written.path / name).read_bytes(), (target / name).read_bytes()
    position, size, _ = next(span for span in dict(written.segments)[name] if span[2] == base_offset)
    changed = [i for i in range(position, position + size) if i >= len(after) or before[i] != after[i]]
    return all(12 <= i - position < 16 for i in changed) and len(before) == len(after)


def loaded_or_refused(path: Path, checkpoints: Checkpoints) -> PartitionLog | LogCorrupted:
    try:
        return open_log(path, checkpoints=checkpoints)
    except LogCorrupted as corrupted:
        return corrupted


@settings(max_examples=60, deadline=None)
@given(draw=st.data())
def test_after_a_crash_the_longest_whole_prefix_is_found(draw: st.DataObject) -> None:
    written = a_written_log()
    target, name, _, _ = damaged_copy(draw, written, [name for name, _ in written.segments])
    try:
        end = written.log.log_end_offset
        recovery_point = draw.draw(st.integers(0, end), label="recovery point")
        high_watermark = draw.draw(st.integers(0, end), label="high watermark")
        first_scanned = max(
            (spans[0][2] for _, spans in written.segments if spans[0][2] <= recovery_point), default=0
        )
        damaged_at = first_damaged_offset(written, target, name)
        is_seen = damaged_at is not None and dict(written.segments)[name][0][2] >= first_scanned
        valid_end = damaged_at if is_seen and damaged_at is not None else end
        before = {file.name: file.read_bytes() for file in target.glob("*.log")}
        checkpoints = after_crash(recovery_point, high_watermark)
        log = loaded_or_refused(target, checkpoints)
        if isinstance(log, LogCorrupted):
            assert valid_end < high_watermark
            assert log.valid_end_offset == valid_end
            assert {file.name: file.read_bytes() for file in target.glob("*.log")} == before
            return
        if is_seen and log.log_end_offset != valid_end:
            assert damaged_at is not None
            assert only_the_epoch_changed(written, target, name, damaged_at)
            return
        assert log.log_end_offset == valid_end >= min(high_watermark, valid_end)
        if is_seen:
            assert valid_end >= high_watermark
            whole = [(offset, value) for offset, value in written.records if offset < valid_end]
            assert offsets_and_values(log) == whole
    finally:
        shutil.rmtree(target.parent)


@settings(max_examples=40, deadline=None)
@given(draw=st.data(), is_clean=st.booleans())
def test_damage_to_any_other_file_costs_no_record(draw: st.DataObject, is_clean: bool) -> None:
    written = a_written_log()
    names = [file.name for file in written.path.iterdir() if file.suffix != ".log"]
    target, name, _, _ = damaged_copy(draw, written, sorted(names))
    try:
        if draw.draw(st.booleans(), label="file is gone"):
            (target / name).unlink()
        end = written.log.log_end_offset
        recovery_point = end if is_clean else draw.draw(st.integers(0, end))
        log = open_log(target, checkpoints=Checkpoints(recovery_point, end, 0, is_clean))
        assert log.log_end_offset == end
        assert offsets_and_values(log) == written.records
        for wanted in range(0, end, 5):
            found = log.offset_for_timestamp(NOW_MS + wanted * 1000)
            expected = written.log.offset_for_timestamp(NOW_MS + wanted * 1000)
            assert found == expected
        assert {p: e.last_sequence for p, e in log.producers.entries.items()} == {
            p: e.last_sequence for p, e in written.log.producers.entries.items()
        }
    finally:
        shutil.rmtree(target.parent)


def a_life(log: PartitionLog) -> None:
    """Everything that changes files: append, roll, flush, truncate, delete, close."""
    for number in range(30):
        batch = a_batch(2, value=b"%d:" % log.log_end_offset + b"y" * 250)
        log.append_as_leader(batch, number // 10, now_ms=NOW_MS + number)
        if number == 12:
            log.flush(NOW_MS)
        if number == 18:
            log.truncate_to(30, now_ms=NOW_MS)
        if number == 24:
            log.update_high_watermark(20)
            log.delete_records(14)
            log.enforce_retention(NOW_MS)
    log.close(NOW_MS)


@settings(max_examples=30, deadline=None)
@given(changes=st.integers(0, 260))
def test_a_crash_at_any_change_leaves_a_log_that_loads_with_a_prefix(changes: int) -> None:
    directory = Path(mkdtemp(prefix="odradek-crash-"))
    try:
        files = FaultyFiles()
        log = open_log(directory / "log", SMALL.replace(internal_segment_bytes=1500), files=files)
        files.crash_after(changes)
        with contextlib.suppress(Crashed):
            a_life(log)
        again = open_log(directory / "log", checkpoints=after_crash(log_start_offset=0))
        found = offsets_and_values(again)
        assert [offset for offset, _ in found] == list(range(again.log_start_offset, again.log_end_offset))
        assert all(
            value is not None and value.startswith(b"%d:" % (offset - offset % 2)) for offset, value in found
        )
        # One more batch than was known to be written, or somewhere on the way of the truncation to 30.
        end = log.log_end_offset
        assert again.log_end_offset in (end, end + 2) or 30 <= again.log_end_offset <= end
        again.append_as_leader(a_batch(), 9, now_ms=NOW_MS)
    finally:
        shutil.rmtree(directory)


def test_the_oracle_sees_what_it_should() -> None:
    written = a_written_log()
    assert len(written.segments) >= 4
    assert open_log(written.path, checkpoints=after_clean_stop(written.log)).log_end_offset == len(
        written.records
    )
    with pytest.raises(LogCorrupted):
        open_log(written.path, checkpoints=after_crash(high_watermark=10**6))
