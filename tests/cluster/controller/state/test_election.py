from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cluster.controller.state.context import LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment
from odradek.cluster.controller.state.election import (
    Election,
    ElectionInput,
    elect,
    first_leader,
    without_replica,
)

EPOCH = 9


def an_election(isr, live, *, leader=1, replicas=(1, 2, 3), **fields) -> ElectionInput:
    state = LeaderAndIsr(leader, 4, tuple(isr), 8, partition_epoch=6)
    return ElectionInput(state, ReplicaAssignment(tuple(replicas)), frozenset(live), **fields)


def test_a_new_partition_is_led_by_its_first_live_replica_and_all_live_ones_are_in_sync():
    assert first_leader(ReplicaAssignment((3, 1, 2)), {1, 2}, EPOCH) == LeaderAndIsr(1, 0, (1, 2), EPOCH)
    assert first_leader(ReplicaAssignment((3,)), {1, 2}, EPOCH) is None


def test_a_lost_leader_is_followed_by_the_first_live_replica_in_sync():
    state = elect(Election.OFFLINE, an_election(isr=(3, 2, 1), live={2, 3}), EPOCH)
    assert state == LeaderAndIsr(2, 5, (3, 2), EPOCH, partition_epoch=6)


def test_order_of_assignment_counts_not_order_of_the_isr():
    state = elect(Election.OFFLINE, an_election(isr=(3, 2), live={2, 3}), EPOCH)
    assert state is not None
    assert state.leader == 2


def test_without_a_live_replica_in_sync_the_partition_stays_offline():
    assert elect(Election.OFFLINE, an_election(isr=(1,), live={2, 3}), EPOCH) is None


@pytest.mark.parametrize(
    ("election", "allows_unclean"), [(Election.OFFLINE, True), (Election.UNCLEAN, False)]
)
def test_an_unclean_election_takes_the_first_live_replica_alone(election, allows_unclean):
    partition = an_election(isr=(1,), live={2, 3}, allows_unclean=allows_unclean)
    state = elect(election, partition, EPOCH)
    assert state == LeaderAndIsr(2, 5, (2,), EPOCH, LeaderRecoveryState.RECOVERING, 6)


def test_an_unclean_election_is_clean_when_it_can_be():
    state = elect(Election.UNCLEAN, an_election(isr=(3,), live={2, 3}), EPOCH)
    assert state == LeaderAndIsr(3, 5, (3,), EPOCH, LeaderRecoveryState.RECOVERED, 6)


def test_the_preferred_replica_leads_only_if_it_lives_in_sync():
    held = {"leader": 2, "replicas": (1, 2, 3)}
    state = elect(Election.PREFERRED, an_election(isr=(2, 1), live={1, 2}, **held), EPOCH)
    assert state == LeaderAndIsr(1, 5, (2, 1), EPOCH, partition_epoch=6)
    assert elect(Election.PREFERRED, an_election(isr=(2, 3), live={1, 2, 3}, **held), EPOCH) is None
    assert elect(Election.PREFERRED, an_election(isr=(1, 2), live={2}, **held), EPOCH) is None


def test_a_move_elects_among_the_target_replicas():
    partition = an_election(isr=(1, 2, 3), live={1, 2, 3})
    moving = partition._replace(assignment=ReplicaAssignment((3, 1, 2), adding=(3,), removing=(1,)))
    state = elect(Election.REASSIGNED, moving, EPOCH)
    assert state == LeaderAndIsr(3, 5, (1, 2, 3), EPOCH, partition_epoch=6)


def test_a_broker_that_shuts_down_leaves_lead_and_isr():
    partition = an_election(isr=(1, 2, 3), live={1, 2, 3}, shutting_down=frozenset({1}))
    state = elect(Election.CONTROLLED_SHUTDOWN, partition, EPOCH)
    assert state == LeaderAndIsr(2, 5, (2, 3), EPOCH, partition_epoch=6)
    alone = an_election(isr=(1,), live={1, 2}, shutting_down=frozenset({1}))
    assert elect(Election.CONTROLLED_SHUTDOWN, alone, EPOCH) is None


def test_the_last_replica_in_sync_stays_there_when_it_goes_offline():
    state = LeaderAndIsr(1, 4, (1,), 8)
    assert without_replica(state, 1, EPOCH) == LeaderAndIsr(-1, 5, (1,), EPOCH)
    state = LeaderAndIsr(1, 4, (1, 2), 8)
    assert without_replica(state, 2, EPOCH) == LeaderAndIsr(1, 5, (1,), EPOCH)


@given(
    isr=st.sets(st.integers(0, 4), min_size=1),
    live=st.sets(st.integers(0, 5)),
    order=st.permutations(range(5)),
    election=st.sampled_from([Election.OFFLINE, Election.PREFERRED, Election.CONTROLLED_SHUTDOWN]),
)
def test_a_clean_election_never_leaves_the_isr_and_always_raises_the_epoch(isr, live, order, election):
    partition = an_election(isr, live, replicas=order)

    state = elect(election, partition, EPOCH)

    if state is None:
        assert election is Election.PREFERRED or not isr & live
    else:
        assert state.leader in isr & live
        assert state.leader in state.isr
        assert set(state.isr) <= isr
        assert state.leader_epoch == partition.state.leader_epoch + 1
