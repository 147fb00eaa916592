"""What a follower accepts of the bytes that its leader sent."""

from __future__ import annotations

import struct

import pytest

from log.given_logs import a_batch
from odradek.log.errors import UnexpectedAppendOffset
from odradek.log.leader_epochs import EpochEntry
from odradek.log.partition.follower_batches import whole_batches
from odradek.records.errors import CorruptBatch

SENT = a_batch(2, base_offset=10, leader_epoch=3) + a_batch(1, base_offset=12, leader_epoch=5)


def test_whole_batches_are_taken_and_a_torn_end_is_left() -> None:
    torn = SENT + a_batch(1, base_offset=13)[:-1]

    found = whole_batches(torn, 10)

    assert bytes(found.payload) == SENT
    assert [(one.base_offset, one.last_offset) for one in found.batches] == [(10, 11), (12, 12)]
    assert [one.size for one in found.batches] == [len(a_batch(2)), len(a_batch(1))]


@pytest.mark.parametrize("length", range(0, 61, 12))
def test_less_than_a_header_is_no_batch_yet(length: int) -> None:
    assert whole_batches(SENT[:length], 10).batches == []


def test_each_new_leader_epoch_begins_with_its_first_batch() -> None:
    found = whole_batches(SENT, 10)
    assert found.new_epochs(-1) == [EpochEntry(3, 10), EpochEntry(5, 12)]
    assert found.new_epochs(3) == [EpochEntry(5, 12)]
    assert found.new_epochs(5) == []


def test_every_flipped_bit_behind_the_crc_is_found() -> None:
    sent = a_batch(2, base_offset=10)
    for position in range(21, len(sent)):
        damaged = bytearray(sent)
        damaged[position] ^= 1
        with pytest.raises(CorruptBatch):
            whole_batches(damaged, 10)


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_that_is_no_batchs_is_refused(length: int) -> None:
    damaged = bytearray(SENT)
    struct.pack_into(">i", damaged, 8, length)
    with pytest.raises(CorruptBatch):
        whole_batches(damaged, 10)


def test_another_format_is_refused() -> None:
    damaged = bytearray(SENT)
    damaged[16] = 1
    with pytest.raises(CorruptBatch):
        whole_batches(damaged, 10)


def test_offsets_never_go_back() -> None:
    with pytest.raises(UnexpectedAppendOffset) as refused:
        whole_batches(SENT, 11)
    assert (refused.value.offset, refused.value.last_offset, refused.value.expected) == (10, 11, 11)
    with pytest.raises(UnexpectedAppendOffset):
        whole_batches(SENT + a_batch(base_offset=12), 10)


def test_a_producers_header_is_kept_for_its_state() -> None:
    sent = a_batch(2, producer_id=5, producer_epoch=0, base_sequence=7) + a_batch(1, base_offset=2)
    first, second = whole_batches(sent, 0).batches
    assert first.header is not None
    assert (first.header.producer_id, first.header.base_sequence) == (5, 7)
    assert second.header is None
