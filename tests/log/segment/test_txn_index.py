"""The index of aborted transactions, over a real file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from log.segment.test_sparse_index import a_file, reopened
from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.log.segment.txn_index import ENTRIES_PER_READ, ENTRY_SIZE, AbortedTxn, TxnIndex


def test_aborted_transactions_are_read_back_and_truncated_by_their_end(tmp_path: Path) -> None:
    index = TxnIndex(a_file(tmp_path, "x", is_created=False), is_created=False)
    assert list(index) == []
    first, second = AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 21)
    index.append(first)
    index.append(second)
    again = TxnIndex(reopened(index.file), is_created=True)
    assert list(again) == [first, second]
    again.check(base_offset=0)
    again.truncate_to(20)
    assert list(again) == [first]


@pytest.mark.parametrize(
    "entries",
    [
        [AbortedTxn(1, 20, 10, 11)],
        [AbortedTxn(1, 0, 20, 21), AbortedTxn(2, 5, 10, 21)],
        [AbortedTxn(1, -5, 10, 11)],
    ],
)
def test_transactions_that_cannot_be_are_damage(tmp_path: Path, entries: list[AbortedTxn]) -> None:
    index = TxnIndex(a_file(tmp_path, "x", is_created=False), is_created=False)
    for entry in entries:
        index.append(entry)
    with pytest.raises(DamagedIndex):
        index.check(base_offset=0)


class CountingFile:
    """Counts the bytes that are read."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.size = file.size
        self.bytes_read = 0

    def read(self, position: int, length: int) -> bytes:
        found = self._file.read(position, length)
        self.bytes_read += len(found)
        return found


def a_long_index(tmp_path: Path, count: int) -> tuple[TxnIndex, list[AbortedTxn]]:
    file = a_file(tmp_path, "x", is_created=False)
    index = TxnIndex(file, is_created=False)
    entries = [AbortedTxn(number, number * 10, number * 10 + 9, number * 10) for number in range(count)]
    for entry in entries:
        index.append(entry)
    return index, entries


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 600])
def test_the_transactions_that_end_at_an_offset_or_later_are_found(tmp_path: Path, count: int) -> None:
    index, entries = a_long_index(tmp_path, count)
    for offset in {0, 1, 9, 10, 2549, 2559, 2560, 2565, 5120, count * 10 - 1, count * 10}:
        assert list(index.from_offset(offset)) == [one for one in entries if one.last_offset >= offset]


def test_a_fetch_near_the_end_does_not_read_all_that_was_aborted_before(tmp_path: Path) -> None:
    index, entries = a_long_index(tmp_path, 5_000)
    file: Any = CountingFile(index.file)
    again = TxnIndex(file, is_created=True)
    assert next(iter(again.from_offset(49_000))) == entries[4_900]
    assert file.bytes_read < 3 * ENTRIES_PER_READ * ENTRY_SIZE
