"""The index of aborted transactions, over a real file."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.segment.test_sparse_index import a_file, reopened
from odradek.log.errors import DamagedIndex
from odradek.log.segment.txn_index import AbortedTxn, TxnIndex


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
