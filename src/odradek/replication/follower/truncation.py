"""What a follower does about its leader's answers: truncation, offsets out of range, errors. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.log.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd

FIRST_RETRY_MS = 50


def first_truncation(latest_epoch: int, log_end_offset: int, high_watermark: int) -> int | None:
    """Where to truncate a log before its first fetch; None if the leader can be asked by epoch.

    Without any leader epoch the leader cannot be asked where the logs part, and only what is below the high
    watermark is certain (as before KIP-101).
    """
    if latest_epoch == UNDEFINED_EPOCH and log_end_offset > high_watermark:
        return high_watermark
    return None


def truncation_offset(
    diverging: EpochEnd, log_end_offset: int, high_watermark: int, end_of: Callable[[int], EpochEnd]
) -> int:
    """Where this log parts from the leader's, which ended `diverging.epoch` at `diverging.end_offset`.

    `end_of` returns where an epoch ended in this log. If this log lacks the leader's epoch, the result is the
    end of the epoch before it; the next fetch then names that one (KIP-279).
    """
    if diverging.end_offset == UNDEFINED_OFFSET:
        return min(high_watermark, log_end_offset)
    own = end_of(diverging.epoch)
    if own.end_offset == UNDEFINED_OFFSET:
        return min(diverging.end_offset, log_end_offset)
    return min(own.end_offset, diverging.end_offset, log_end_offset)


class OutOfRange(NamedTuple):
    """What to do about a fetch outside of the leader's log; neither: it is inside by now."""

    truncate_to: int | None = None
    restart_at: int | None = None


NOTHING_TO_CUT = OutOfRange()


def after_out_of_range(log_end_offset: int, leader_start_offset: int, leader_end_offset: int) -> OutOfRange:
    """Truncate a log that is longer than the leader's; drop one that ends before the leader's begins."""
    if leader_end_offset < log_end_offset:
        return OutOfRange(truncate_to=leader_end_offset)
    if leader_start_offset > log_end_offset:
        return OutOfRange(restart_at=leader_start_offset)
    return NOTHING_TO_CUT


class AfterFetchError(Enum):
    """What follows an error of one partition in a Fetch response."""

    ASK_FOR_RANGE = auto()
    """The offset is not in the leader's log: ask where that begins and ends."""
    RETRY = auto()
    """Leader and follower do not have the same leader epoch yet, or the leader has a problem."""
    STOP = auto()
    """The controller has elected another leader, whose epoch this broker does not have yet."""


def after_fetch_error(error_code: ErrorCode) -> AfterFetchError:
    """The consequence of an error."""
    if error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return AfterFetchError.ASK_FOR_RANGE
    if error_code is ErrorCode.FENCED_LEADER_EPOCH:
        return AfterFetchError.STOP
    return AfterFetchError.RETRY


def retry_delay_ms(failures: int, max_ms: int) -> int:
    """How long to leave a partition out of fetches after so many failures in a row.

    The first ones are short: after an election, brokers get the controller's requests at different moments.
    """
    return min(FIRST_RETRY_MS << min(max(failures - 1, 0), 20), max_ms)
