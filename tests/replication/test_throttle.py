"""How long a throttled follower waits after a fetch."""

from __future__ import annotations

from odradek.replication.throttle import Throttle, is_throttled


def test_a_fetch_takes_as_long_as_the_rate_allows() -> None:
    throttle = Throttle()
    assert throttle.delay_ms(1000, 1000, 0) == 1000
    assert throttle.delay_ms(500, 1000, 1000) == 500


def test_fetches_of_several_partitions_share_the_rate() -> None:
    throttle = Throttle()
    assert throttle.delay_ms(1000, 1000, 0) == 1000
    assert throttle.delay_ms(1000, 1000, 0) == 2000


def test_time_in_which_nothing_was_fetched_is_not_saved_up() -> None:
    throttle = Throttle()
    throttle.delay_ms(1000, 1000, 0)
    assert throttle.delay_ms(1000, 1000, 60_000) == 1000


def test_without_a_limit_nobody_waits() -> None:
    assert Throttle().delay_ms(1 << 20, (1 << 63) - 1, 0) == 0


def test_replicas_are_named_by_partition_and_broker() -> None:
    assert is_throttled(("0:1", "2:3"), 2, 3)
    assert not is_throttled(("0:1", "2:3"), 2, 1)
    assert is_throttled(("*",), 7, 7)
    assert not is_throttled((), 0, 0)
