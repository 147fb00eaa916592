from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.given_logs import a_batch, a_marker
from odradek.log.errors import CoordinatorFenced, InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot, encode_snapshot
from odradek.log.producers.producer_states import (
    MAX_SEQUENCE,
    BatchMetadata,
    CompletedTxn,
    Marker,
    ProducerEntry,
    ProducerStates,
)
from odradek.records.batch import BatchHeader, read_header

COMMIT = Marker(is_commit=True, coordinator_epoch=0, timestamp_ms=5)
ABORT = Marker(is_commit=False, coordinator_epoch=0, timestamp_ms=5)


def header(
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    offset: int = 0,
    producer_id: int = 7,
    is_transactional: bool = False,
) -> BatchHeader:
    batch = a_batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        base_offset=offset,
        is_transactional=is_transactional,
    )
    return read_header(batch)


def marker_header(*, epoch: int = 0, offset: int = 0, producer_id: int = 7) -> BatchHeader:
    batch = a_marker(producer_id, is_commit=True, producer_epoch=epoch)
    return read_header(batch)._replace(base_offset=offset)


def states_after(*headers: BatchHeader) -> ProducerStates:
    producers = ProducerStates()
    for one in headers:
        producers.check(one)
        producers.apply(one)
    return producers


def test_the_next_sequence_is_accepted() -> None:
    producers = states_after(header(0, count=3), header(3, count=2, offset=3))
    producers.check(header(5, offset=5))
    assert producers.entries[7].last_sequence == 4


def test_one_of_the_last_five_batches_is_a_duplicate_with_its_old_offsets() -> None:
    producers = states_after(*(header(i * 2, count=2, offset=100 + i * 2) for i in range(7)))
    assert [producers.duplicate_of(header(i * 2, count=2)) is not None for i in range(7)] == [False] * 2 + [
        True
    ] * 5
    found = producers.duplicate_of(header(8, count=2))
    assert found is not None
    assert (found.base_offset, found.last_offset) == (108, 109)


def test_a_batch_that_only_overlaps_an_old_one_is_no_duplicate() -> None:
    producers = states_after(header(0, count=4))
    assert producers.duplicate_of(header(0, count=3)) is None
    assert producers.duplicate_of(header(1, count=3)) is None


@pytest.mark.parametrize("sequence", [1, 4, 6, 100])
def test_a_gap_or_an_old_sequence_is_out_of_order(sequence: int) -> None:
    producers = states_after(header(0, count=5))
    with pytest.raises(OutOfOrderSequence) as raised:
        producers.check(header(sequence))
    assert (raised.value.sequence, raised.value.last_sequence) == (sequence, 4)


def test_sequences_wrap_to_zero() -> None:
    producers = ProducerStates()
    producers.apply(header(MAX_SEQUENCE - 1, count=2))
    producers.check(header(0))
    producers.apply(header(0, count=3, offset=2))
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(1))
    wrapped = ProducerStates()
    wrapped.apply(header(MAX_SEQUENCE, count=3))  # MAX, 0, 1
    assert wrapped.entries[7].last_sequence == 1
    assert wrapped.duplicate_of(header(MAX_SEQUENCE, count=3)) is not None
    wrapped.check(header(2))


def test_an_unknown_producer_may_start_with_any_sequence() -> None:
    ProducerStates().check(header(500))


def test_an_older_epoch_is_fenced() -> None:
    producers = states_after(header(0, epoch=3))
    with pytest.raises(InvalidProducerEpoch) as raised:
        producers.check(header(1, epoch=2))
    assert (raised.value.producer_epoch, raised.value.current_epoch) == (2, 3)


def test_a_newer_epoch_starts_with_sequence_zero() -> None:
    producers = states_after(header(0, count=5, epoch=1))
    with pytest.raises(OutOfOrderSequence):
        producers.check(header(5, epoch=2))
    producers.check(header(0, epoch=2))
    producers.apply(header(0, epoch=2, offset=5))
    assert len(producers.entries[7].batches) == 1


def test_a_coordinator_writes_without_sequences_but_not_with_an_old_epoch() -> None:
    producers = states_after(header(0, epoch=1))
    producers.check(header(99, epoch=1), checks_sequence=False)
    with pytest.raises(InvalidProducerEpoch):
        producers.check(header(99, epoch=0), checks_sequence=False)


def test_an_open_transaction_holds_back_the_last_stable_offset() -> None:
    producers = states_after(header(0, offset=10, is_transactional=True))
    assert producers.first_unstable_offset == 10
    producers.apply(header(1, offset=11, is_transactional=True))
    completed = producers.apply(marker_header(offset=12), COMMIT)
    assert completed == CompletedTxn(7, 10, 12, is_aborted=False, last_stable_offset=13)
    # The marker counts only when the high watermark has passed it.
    assert producers.first_unstable_offset == 10
    producers.on_high_watermark(12)
    assert producers.first_unstable_offset == 10
    producers.on_high_watermark(13)
    assert producers.first_unstable_offset is None


def test_an_abort_knows_the_next_open_transaction() -> None:
    producers = ProducerStates()
    producers.apply(header(0, offset=10, producer_id=1, is_transactional=True))
    producers.apply(header(0, offset=11, producer_id=2, is_transactional=True))
    first = producers.apply(marker_header(offset=12, producer_id=1), ABORT)
    second = producers.apply(marker_header(offset=13, producer_id=2), ABORT)
    assert first == CompletedTxn(1, 10, 12, is_aborted=True, last_stable_offset=11)
    assert second == CompletedTxn(2, 11, 13, is_aborted=True, last_stable_offset=14)


def test_a_marker_without_records_completes_nothing() -> None:
    producers = ProducerStates()
    assert producers.apply(marker_header(offset=5), ABORT) is None
    assert producers.first_unstable_offset is None
    assert producers.entries[7].coordinator_epoch == 0


def test_a_plain_write_within_a_transaction_is_refused() -> None:
    producers = states_after(header(0, is_transactional=True))
    with pytest.raises(InvalidTxnState):
        producers.check(header(1, offset=1))


def test_markers_of_old_producers_and_old_coordinators_are_fenced() -> None:
    producers = states_after(header(0, epoch=5, is_transactional=True))
    with pytest.raises(InvalidProducerEpoch):
        producers.check_marker(marker_header(epoch=4), COMMIT)
    producers.apply(marker_header(epoch=5, offset=1), COMMIT._replace(coordinator_epoch=3))
    with pytest.raises(CoordinatorFenced):
        producers.check_marker(marker_header(epoch=5), COMMIT._replace(coordinator_epoch=2))


def test_since_transactions_v2_a_marker_of_the_same_epoch_cannot_end_the_next_transaction() -> None:
    producers = states_after(header(0, epoch=5, is_transactional=True))
    producers.check_marker(marker_header(epoch=5), COMMIT, transaction_version=0)
    with pytest.raises(InvalidProducerEpoch):
        producers.check_marker(marker_header(epoch=5), COMMIT, transaction_version=2)
    producers.check_marker(marker_header(epoch=6), COMMIT, transaction_version=2)
    producers.apply(marker_header(epoch=6, offset=1), COMMIT)
    producers.check_marker(marker_header(epoch=6), COMMIT, transaction_version=2)  # a repetition


def test_silent_producers_are_forgotten_but_not_within_a_transaction() -> None:
    producers = ProducerStates()
    producers.apply(header(0, producer_id=1))
    producers.apply(header(0, producer_id=2, offset=1, is_transactional=True))
    last_ms = producers.entries[1].last_timestamp_ms
    assert producers.remove_expired(last_ms + 99, 100) == 0
    assert producers.remove_expired(last_ms + 100, 100) == 1
    assert list(producers.entries) == [2]


def test_has_ongoing_transaction_distinguishes_epochs_of_a_producer() -> None:
    producers = states_after(header(0, epoch=1, is_transactional=True))
    assert producers.has_ongoing_transaction(7, 1)
    assert not producers.has_ongoing_transaction(7, 2)
    assert not producers.has_ongoing_transaction(8, 1)


# Snapshots

KAFKAS = bytes.fromhex(
    "00019eb3dabc00000001000000000000000000000000 4e1f0000000000004e1f00000cdb000001a1e12dc4f9ffffffff"
    "ffffffffffffffff".replace(" ", "")
)

entries = st.builds(
    ProducerEntry,
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.just(77),
    st.integers(-1, 2**62),
    st.one_of(
        st.just(()),
        st.tuples(
            st.builds(
                BatchMetadata,
                st.integers(0, MAX_SEQUENCE),
                st.integers(0, 2**62),
                st.integers(0, 2**31 - 1),
                st.just(77),
            )
        ),
    ),
)


def test_a_snapshot_of_kafka_is_read_and_written_byte_for_byte() -> None:
    (entry,) = decode_snapshot(KAFKAS)
    assert (entry.producer_id, entry.producer_epoch, entry.last_sequence) == (0, 0, 19999)
    assert (entry.last_offset, entry.last_offset_delta, entry.coordinator_epoch) == (19999, 3291, -1)
    assert encode_snapshot([entry]) == KAFKAS


@given(st.lists(entries, unique_by=lambda entry: entry.producer_id, max_size=5))
def test_snapshots_are_read_back(written: list[ProducerEntry]) -> None:
    assert decode_snapshot(encode_snapshot(written)) == written


@given(st.integers(0, len(KAFKAS) - 1), st.integers(1, 255))
def test_any_flip_in_a_snapshot_is_noticed(position: int, mask: int) -> None:
    damaged = bytearray(KAFKAS)
    damaged[position] ^= mask
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(bytes(damaged))


@given(st.integers(0, len(KAFKAS) - 1))
def test_any_cut_of_a_snapshot_is_noticed(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(KAFKAS[:size])
