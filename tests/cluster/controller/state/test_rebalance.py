from __future__ import annotations

from cluster.controller.contexts import a_context, put
from odradek.cluster.controller.state.rebalance import imbalanced_partitions


def test_leaders_are_handed_back_when_a_broker_leads_too_few_of_its_own():
    context = a_context(live=[1, 2])
    away = put(context, "t", 0, (1, 2), leader=2, isr=(1, 2))
    for index in range(1, 10):
        put(context, "t", index, (1, 2), leader=1, isr=(1, 2))

    assert imbalanced_partitions(context, threshold_percent=10) == []
    assert imbalanced_partitions(context, threshold_percent=9) == [away]


def test_only_a_preferred_replica_that_lives_in_sync_gets_its_partitions_back():
    context = a_context(live=[1, 2])
    put(context, "lagging", 0, (1, 2), leader=2, isr=(2,))
    put(context, "dead", 0, (3, 2), leader=2, isr=(2, 3))
    put(context, "leaving", 0, (1, 2), leader=2, isr=(1, 2))
    context.deletions.queued.add("leaving")

    assert imbalanced_partitions(context, threshold_percent=0) == []
