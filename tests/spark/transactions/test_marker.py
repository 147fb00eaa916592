"""What a marker says of the starts of its query; no broker runs here."""

from __future__ import annotations

import pytest

from odradek.spark.transactions.errors import FencedByOtherDriver
from odradek.spark.transactions.marker import MicroBatch, is_committed, micro_batch_in

NAME = "totals"


def committed(*runs: str) -> MicroBatch:
    """The marker after one micro-batch of each of these starts."""
    last = None
    for number, run in enumerate(runs):
        last = MicroBatch("a query", number, plan=7).of_run(run).after(last)
    assert last is not None
    return last


def test_a_marker_is_read_as_it_was_written() -> None:
    for marker in (committed("a"), committed("a", "b"), MicroBatch("a query", 3)):
        assert micro_batch_in(marker.metadata()) == marker


def test_a_start_that_another_one_has_replaced_is_told_whatever_it_is_about_to_write() -> None:
    last = committed("first", "first", "second")
    for number in (1, 2, 3):
        with pytest.raises(FencedByOtherDriver, match="another driver has begun under the name 'totals'"):
            is_committed(last, MicroBatch("a query", number, plan=7).of_run("first"), NAME)


@pytest.mark.parametrize("run", ["second", "third", None])
def test_the_newest_start_and_a_later_one_go_on(run: str | None) -> None:
    last = committed("first", "second")
    assert is_committed(last, MicroBatch("a query", 1, plan=7).of_run(run), NAME)
    assert not is_committed(last, MicroBatch("a query", 2, plan=7).of_run(run), NAME)


def test_a_marker_stays_short_however_often_a_query_is_started() -> None:
    runs = [f"{number:08x}-0000-0000-0000-000000000000" for number in range(100)]
    marker = committed(*runs)
    assert len(marker.metadata()) < 200
    assert marker.runs[-1] == "00000063"
    with pytest.raises(FencedByOtherDriver):
        is_committed(marker, MicroBatch("a query", 100).of_run(runs[95]), NAME)
