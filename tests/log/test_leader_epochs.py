from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log.leader_epochs import EpochEnd, EpochEntry, LeaderEpochs, decode_epochs

rising = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 500)), max_size=12)


def test_the_file_is_kafkas() -> None:
    epochs = LeaderEpochs([EpochEntry(0, 0), EpochEntry(3, 120)])
    assert epochs.encode() == b"0\n2\n0 0\n3 120\n"
    assert decode_epochs(b"0\n2\n0 0\n3 120\n") == [EpochEntry(0, 0), EpochEntry(3, 120)]


@given(rising)
def test_entries_always_rise_and_are_read_back(assigned: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, start_offset in assigned:
        epochs.assign(epoch, start_offset)
    assert decode_epochs(epochs.encode()) == list(epochs)


def test_an_assignment_drops_the_history_that_it_contradicts() -> None:
    epochs = LeaderEpochs([EpochEntry(1, 10), EpochEntry(2, 20), EpochEntry(3, 30)])
    assert epochs.assign(4, 15)
    assert list(epochs) == [EpochEntry(1, 10), EpochEntry(4, 15)]
    assert epochs.assign(4, 15) is False


def test_the_end_of_an_epoch_is_the_start_of_the_next() -> None:
    epochs = LeaderEpochs([EpochEntry(1, 10), EpochEntry(2, 20), EpochEntry(5, 30)])
    assert epochs.end_offset_for(5, 99) == EpochEnd(5, 99)
    assert epochs.end_offset_for(1, 99) == EpochEnd(1, 20)
    assert epochs.end_offset_for(3, 99) == EpochEnd(2, 30)  # nothing of 3: the one before it
    assert epochs.end_offset_for(0, 99) == EpochEnd(0, 10)  # all of it was deleted
    assert epochs.end_offset_for(6, 99) == EpochEnd(-1, -1)
    assert LeaderEpochs().end_offset_for(0, 99) == EpochEnd(-1, -1)


def test_an_offset_belongs_to_the_epoch_in_force() -> None:
    epochs = LeaderEpochs([EpochEntry(1, 10), EpochEntry(2, 20)])
    assert [epochs.epoch_for(offset) for offset in (9, 10, 19, 20, 1000)] == [-1, 1, 1, 2, 2]


def test_truncation_forgets_what_is_cut_off() -> None:
    epochs = LeaderEpochs([EpochEntry(1, 10), EpochEntry(2, 20), EpochEntry(3, 30)])
    assert epochs.truncate_from_end(30)
    assert epochs.truncate_from_end(30) is False
    assert list(epochs) == [EpochEntry(1, 10), EpochEntry(2, 20)]
    assert epochs.truncate_from_start(25)
    assert list(epochs) == [EpochEntry(2, 25)]
    assert epochs.truncate_from_start(25) is False


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"1\n0\n", b"0\n2\n0 0\n", b"0\n2\n1 0\n0 5\n", b"0\n1\n0\n", b"0\n1\n-1 0\n"]
)
def test_a_damaged_file_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_epochs(content)
