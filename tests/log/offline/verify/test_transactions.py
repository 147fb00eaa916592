from __future__ import annotations

import struct

import pytest

from log.given_logs import a_batch
from odradek.log.offline.verify.transactions import TransactionCheck, read_entries
from odradek.log.producers.producer_states import Marker
from odradek.records.batch import BatchHeader, read_header

ABORT = Marker(is_commit=False, coordinator_epoch=0, timestamp_ms=0)
COMMIT = Marker(is_commit=True, coordinator_epoch=0, timestamp_ms=0)


def entry(producer_id: int, first: int, last: int, stable: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, producer_id, first, last, stable)


def data(producer_id: int, offset: int) -> BatchHeader:
    batch = a_batch(1, base_offset=offset, producer_id=producer_id, producer_epoch=0, is_transactional=True)
    return read_header(batch)


def control(producer_id: int, offset: int) -> BatchHeader:
    header = data(producer_id, offset)
    return header._replace(attributes=header.attributes | 0x20)


def problems(
    content: bytes, *steps: tuple[BatchHeader, Marker | None], is_complete: bool = True
) -> list[str]:
    check = TransactionCheck(is_complete=is_complete)
    check.enter_segment(content)
    for header, marker in steps:
        check.add_batch(header, marker)
    return [problem for _, problem in check.finish_segment()]


def interleaved() -> list[tuple[BatchHeader, Marker | None]]:
    return [(data(1, 0), None), (data(2, 1), None), (control(1, 2), ABORT), (control(2, 3), COMMIT)]


def test_the_right_entry_is_right() -> None:
    assert problems(entry(1, 0, 2, 1), *interleaved()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        entry(3, 0, 2, 1),
        entry(1, 1, 2, 1),
        entry(1, 0, 3, 1),
        entry(1, 0, 2, 3),
        entry(1, 0, 2, 1, version=1),
    ],
)
def test_a_wrong_or_missing_entry_is_found_in_a_complete_log(wrong: bytes) -> None:
    assert problems(wrong, *interleaved())


def test_where_records_are_gone_an_entry_must_only_fit() -> None:
    after_compaction = [(control(1, 20), ABORT), (data(1, 25), None), (control(1, 30), ABORT)]
    assert problems(entry(1, 22, 30, 31), *after_compaction, is_complete=False) == []
    assert problems(entry(1, 10, 20, 21) + entry(1, 22, 30, 5), *after_compaction, is_complete=False) == []
    assert problems(
        entry(1, 15, 30, 31), *after_compaction, is_complete=False
    )  # begins before the last marker
    assert problems(entry(1, 26, 30, 31), *after_compaction, is_complete=False)  # begins after its records


def test_an_abort_of_nothing_needs_no_entry() -> None:
    assert problems(b"", (control(1, 0), ABORT)) == []


def test_entries_have_their_form_and_their_order() -> None:
    assert read_entries(entry(1, 0, 2, 1) + b"x")[1]
    assert read_entries(entry(1, 0, 5, 1) + entry(1, 3, 4, 4))[1]
    assert read_entries(entry(1, 0, 2, 1) + entry(1, 3, 4, 4))[1] == []
