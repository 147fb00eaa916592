"""A batch that begins a transaction is verified first; what happens meanwhile decides about it."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.log.errors import OutOfOrderSequence
from odradek.log.producers.producer_states import Marker, ProducerStates, Verification
from odradek.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader

PRODUCER = 7
V1, V2 = 0, 2


def header(epoch: int, sequence: int, *, offset: int = 0, is_control: bool = False) -> BatchHeader:
    attributes = TRANSACTIONAL_FLAG | (CONTROL_FLAG if is_control else 0)
    return BatchHeader(offset, 100, 0, 2, 0, attributes, 0, 0, 0, PRODUCER, epoch, sequence, 1)


def begin(states: ProducerStates, epoch: int, sequence: int = 0, **given: Any) -> Verification | None:
    return states.begin_verification(PRODUCER, epoch, sequence, 0, **given)


def end(states: ProducerStates, epoch: int, version: int, *, offset: int = 1) -> None:
    marker = header(epoch, -1, offset=offset, is_control=True)
    states.void_verification(marker, version)
    states.apply(marker, Marker(True, 0, 0))


def test_only_the_first_batch_of_a_transaction_is_verified() -> None:
    states = ProducerStates()
    verification = begin(states, 0)
    assert verification is not None
    assert states.is_valid(PRODUCER, verification)
    states.check(header(0, 0))
    states.apply(header(0, 0))
    assert begin(states, 0, 1) is None
    assert states.verifying == {}
    end(states, 0, V1)
    assert begin(states, 0, 1) is not None


def test_a_marker_voids_what_was_verified_for_its_transaction() -> None:
    states = ProducerStates()
    verification = begin(states, 0)
    assert verification is not None
    end(states, 0, V1)
    assert not states.is_valid(PRODUCER, verification)
    again = begin(states, 0)
    assert again is not None
    assert not states.is_valid(PRODUCER, verification)
    assert states.is_valid(PRODUCER, again)


def test_a_v2_marker_voids_the_epoch_before_it_and_not_the_next_transaction() -> None:
    for epoch, is_valid in ((3, False), (4, True)):
        states = ProducerStates()
        verification = begin(states, epoch)
        assert verification is not None
        end(states, 4, V2)
        assert states.is_valid(PRODUCER, verification) is is_valid


@pytest.mark.parametrize("other_epoch", [4, 6], ids=["of a zombie", "of a fencing producer"])
def test_a_batch_of_another_epoch_does_not_void_a_verification(other_epoch: int) -> None:
    states = ProducerStates()
    verification = begin(states, 5, 3)
    other = begin(states, other_epoch)
    assert verification is not None
    assert other is not None
    assert states.is_valid(PRODUCER, verification)
    assert states.is_valid(PRODUCER, other)
    states.check(header(5, 3))
    states.apply(header(5, 3))
    assert states.is_valid(PRODUCER, other) is (other_epoch > 5)


def test_a_marker_voids_what_was_verified_in_epochs_before_it() -> None:
    states = ProducerStates()
    before, after = begin(states, 3), begin(states, 5)
    assert before is not None
    assert after is not None
    end(states, 4, V1)
    assert not states.is_valid(PRODUCER, before)
    assert states.is_valid(PRODUCER, after)


def test_a_batch_does_not_overtake_one_that_could_not_be_verified() -> None:
    states = ProducerStates()
    begin(states, 0, 0)
    begin(states, 0, 1)
    with pytest.raises(OutOfOrderSequence):
        states.check(header(0, 1))
    states.check(header(0, 0))


def test_an_unknown_producer_begins_a_v2_transaction_with_sequence_0() -> None:
    states = ProducerStates()
    begin(states, 0, 7)
    states.check(header(0, 7))
    states = ProducerStates()
    begin(states, 0, 7, begins_at_zero=True)
    with pytest.raises(OutOfOrderSequence):
        states.check(header(0, 7))


def test_a_verification_that_came_to_nothing_expires() -> None:
    states = ProducerStates()
    begin(states, 0)
    states.remove_expired(999, 1000)
    assert PRODUCER in states.verifying
    states.remove_expired(1000, 1000)
    assert states.verifying == {}
