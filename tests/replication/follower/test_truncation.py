"""Where a follower truncates, and what it does about errors."""

from __future__ import annotations

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.log.leader_epochs import EpochEnd, EpochEntry, LeaderEpochs
from odradek.replication.follower.truncation import (
    AfterFetchError,
    OutOfRange,
    after_fetch_error,
    after_out_of_range,
    first_truncation,
    retry_delay_ms,
    truncation_offset,
)


def truncated(diverging: tuple[int, int], *entries: tuple[int, int], end: int, hw: int = 0) -> int:
    epochs = LeaderEpochs(EpochEntry(*entry) for entry in entries)
    return truncation_offset(EpochEnd(*diverging), end, hw, lambda epoch: epochs.end_offset_for(epoch, end))


def test_a_longer_log_of_the_same_epoch_is_cut_to_the_leaders_end() -> None:
    assert truncated((3, 8), (3, 0), end=10) == 8


def test_an_epoch_that_ended_earlier_here_is_cut_where_the_next_begins() -> None:
    # Here epoch 3 ended at 5; the leader's went on to 8.
    assert truncated((3, 8), (3, 0), (4, 5), end=10) == 5


def test_an_epoch_that_this_log_lacks_is_cut_to_the_end_of_the_one_before() -> None:
    # The leader answers with epoch 2, which this log never had: everything of 3 and later goes.
    assert truncated((2, 8), (1, 0), (3, 6), end=10) == 6


def test_without_an_epoch_in_common_nothing_stays_behind_the_leaders_end() -> None:
    assert truncated((0, 4), (5, 3), end=10) == 3
    assert truncated((7, 4), end=10) == 4


def test_a_leader_that_knows_no_epoch_leaves_what_is_committed() -> None:
    assert truncated((-1, -1), (3, 0), end=10, hw=7) == 7


def test_a_log_without_epochs_is_cut_to_the_high_watermark_before_its_first_fetch() -> None:
    assert first_truncation(-1, 10, 7) == 7
    assert first_truncation(-1, 7, 7) is None
    assert first_truncation(0, 10, 7) is None


def test_a_fetch_out_of_range_truncates_or_restarts() -> None:
    assert after_out_of_range(10, 0, 8) == OutOfRange(truncate_to=8)
    assert after_out_of_range(10, 12, 20) == OutOfRange(restart_at=12)
    assert after_out_of_range(10, 5, 20) == OutOfRange()
    assert after_out_of_range(10, 10, 10) == OutOfRange()


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, AfterFetchError.ASK_FOR_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, AfterFetchError.STOP),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, AfterFetchError.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, AfterFetchError.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_ID, AfterFetchError.RETRY),
        (ErrorCode.INCONSISTENT_TOPIC_ID, AfterFetchError.RETRY),
        (ErrorCode.KAFKA_STORAGE_ERROR, AfterFetchError.RETRY),
    ],
)
def test_each_error_has_its_consequence(error: ErrorCode, after: AfterFetchError) -> None:
    assert after_fetch_error(error) is after


def test_retries_begin_soon_and_slow_down() -> None:
    assert [retry_delay_ms(failures, 1000) for failures in (1, 2, 3, 4, 5, 6, 100)] == [
        50,
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]
