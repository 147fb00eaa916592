"""How long a throttled follower waits after a fetch, and which fetches a leader answers without records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from odradek.common.config import LONG_MAX
from odradek.common.ids import TopicPartition
from odradek.replication.leader_throttle import LeaderThrottle
from odradek.replication.throttle import ReplicationThrottle, is_throttled


def test_a_fetch_takes_as_long_as_the_rate_allows() -> None:
    throttle = ReplicationThrottle()
    throttle.add(1000, 1000, 0)
    assert throttle.wait_ms(1000, 0) == 1000
    assert throttle.wait_ms(1000, 600) == 400
    assert throttle.wait_ms(1000, 1000) == 0


def test_fetches_of_several_partitions_share_the_rate() -> None:
    throttle = ReplicationThrottle()
    throttle.add(1000, 1000, 0)
    throttle.add(1000, 1000, 0)
    assert throttle.wait_ms(1000, 0) == 2000


def test_time_in_which_nothing_was_fetched_is_not_saved_up() -> None:
    throttle = ReplicationThrottle()
    throttle.add(1000, 1000, 0)
    throttle.add(1000, 1000, 60_000)
    assert throttle.wait_ms(1000, 60_000) == 1000


def test_a_higher_rate_shortens_the_wait_for_what_was_fetched_before() -> None:
    throttle = ReplicationThrottle()
    throttle.add(1_000_000, 1, 0)
    assert throttle.wait_ms(1, 0) == 1_000_000_000
    assert throttle.wait_ms(1_000_000, 10) < 1000


def test_without_a_limit_no_fetch_waits() -> None:
    throttle = ReplicationThrottle()
    throttle.add(1 << 20, LONG_MAX, 0)
    assert throttle.wait_ms(LONG_MAX, 0) == 0


def test_replicas_are_named_by_partition_and_broker() -> None:
    assert is_throttled(("0:1", "2:3"), 2, 3)
    assert not is_throttled(("0:1", "2:3"), 2, 1)
    assert is_throttled(("*",), 7, 7)
    assert not is_throttled((), 0, 0)


def a_partition(*listed: str) -> Any:
    """Partition 0, led by broker 1, of replicas 1, 2 and 3, of which 3 is not in sync."""
    config = SimpleNamespace(leader_replication_throttled_replicas=listed)
    return SimpleNamespace(
        isr=(1, 2), log=SimpleNamespace(config=config), topic_partition=TopicPartition("t", 0)
    )


def test_a_leader_limits_followers_out_of_sync_of_what_is_listed_for_it() -> None:
    throttle = LeaderThrottle(1, lambda: 1000)
    assert throttle.holds_for(a_partition("0:1"), 3)
    assert throttle.holds_for(a_partition("*"), 3)
    assert not throttle.holds_for(a_partition("0:1"), 2)
    assert not throttle.holds_for(a_partition("0:2", "1:1"), 3)
    assert not throttle.holds_for(a_partition(), 3)


def test_a_leader_sends_nothing_until_the_rate_allows_it_again() -> None:
    rate = LONG_MAX
    throttle = LeaderThrottle(1, lambda: rate)
    assert not throttle.is_on
    rate = 1000
    assert throttle.is_on
    assert not throttle.is_exceeded(0)
    throttle.sent(1000, 0)
    assert throttle.is_exceeded(999)
    assert not throttle.is_exceeded(1000)
