from __future__ import annotations

from odradek.replication.watermark import high_watermark


def test_the_oracle_of_the_specification():
    ends = {1: 9, 2: 8, 3: 6}
    first = high_watermark(ends, [1, 2, 3], 0, min_in_sync=1)
    second = high_watermark({1: 9, 2: 8, 3: 8}, [1, 2, 3], first, min_in_sync=1)
    third = high_watermark({1: 9, 2: 9, 3: 9}, [1, 2, 3], second, min_in_sync=1)
    assert (first, second, third) == (6, 8, 9)


def test_only_replicas_in_sync_count():
    assert high_watermark({1: 9, 2: 8, 3: 2}, [1, 2], 5, min_in_sync=1) == 8


def test_it_never_moves_back():
    assert high_watermark({1: 3}, [1], 5, min_in_sync=1) == 5


def test_it_waits_for_enough_replicas_in_sync():
    assert high_watermark({1: 9}, [1], 5, min_in_sync=2) == 5
    assert high_watermark({1: 9, 2: 7}, [1, 2], 5, min_in_sync=2) == 7


def test_a_replica_that_never_fetched_holds_it_back():
    assert high_watermark({1: 9}, [1, 2], 5, min_in_sync=1) == 5
