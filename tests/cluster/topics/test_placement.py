from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cluster.topics.placement import (
    BrokerLocation,
    alternate_racks,
    place_more_replicas,
    place_replicas,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
SIX_IN_RACKS = [BrokerLocation(id_, rack) for id_, rack in RACKS.items()]


def sites(count: int) -> list[BrokerLocation]:
    return [BrokerLocation(id_) for id_ in range(count)]


def test_twenty_brokers_get_the_assignment_of_the_specification():
    assignment = place_replicas(sites(20), 20, 10, start_index=19, shift=0)

    assert assignment[0] == (19, 0, 1, 2, 3, 4, 5, 6, 7, 8)
    assert assignment[12] == (11, 12, 13, 14, 15, 16, 17, 18, 19, 0)
    assert assignment[19] == (18, 19, 0, 1, 2, 3, 4, 5, 6, 7)
    for partition in range(1, 20):
        assert assignment[partition] == tuple((partition - 1 + step) % 20 for step in range(10))


def test_the_shift_grows_at_every_multiple_of_the_broker_count():
    assignment = place_replicas(sites(5), 15, 3, start_index=0, shift=0)

    assert assignment[0] == (0, 1, 2)
    assert assignment[5] == (0, 2, 3)
    assert assignment[10] == (0, 3, 4)


def test_order_of_the_brokers_given_does_not_matter():
    shuffled = [BrokerLocation(3), BrokerLocation(0), BrokerLocation(2), BrokerLocation(1)]
    assert place_replicas(shuffled, 8, 3, start_index=1, shift=2) == place_replicas(
        sites(4), 8, 3, start_index=1, shift=2
    )


def test_racks_are_alternated_as_kafka_does():
    assert alternate_racks(SIX_IN_RACKS) == [0, 3, 1, 5, 4, 2]
    assert alternate_racks([site for site in SIX_IN_RACKS if site.broker_id != 5]) == [0, 3, 1, 4, 2]


def test_replicas_spread_over_racks_as_kafka_does():
    assert place_replicas(SIX_IN_RACKS, 7, 3, start_index=0, shift=0) == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


def test_brokers_half_of_them_without_rack_are_placed_without_racks():
    mixed = [BrokerLocation(0, "a"), BrokerLocation(1), BrokerLocation(2, "a")]
    assert place_replicas(mixed, 6, 2, start_index=0, shift=0) == place_replicas(
        sites(3), 6, 2, start_index=0, shift=0
    )


def test_one_broker_takes_every_partition():
    assert place_replicas([BrokerLocation(0)], 3, 1, start_index=0, shift=0) == {0: (0,), 1: (0,), 2: (0,)}


@pytest.mark.parametrize(
    ("partitions", "replicas", "message", "code"),
    [
        (
            1,
            4,
            "Replication factor: 4 larger than available brokers: 3.",
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
        (1, 0, "Replication factor must be larger than 0.", ErrorCode.INVALID_REPLICATION_FACTOR),
        (0, 1, "Number of partitions must be larger than 0.", ErrorCode.INVALID_PARTITIONS),
    ],
)
def test_what_cannot_be_placed_is_refused_in_kafkas_words(partitions, replicas, message, code):
    with pytest.raises(KafkaError) as caught:
        place_replicas(sites(3), partitions, replicas, start_index=0, shift=0)

    assert (str(caught.value), caught.value.error_code) == (message, code)


def test_added_partitions_continue_where_the_first_ones_stopped():
    whole = place_replicas(sites(5), 12, 3, start_index=2, shift=2)
    existing = {partition: whole[partition] for partition in range(4)}

    assert place_more_replicas(sites(5), existing, 3) == place_replicas(
        sites(5), 3, 3, start_index=2, shift=2, start_partition=4
    )


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=12),
    partitions=st.integers(1, 40),
    draws=st.data(),
)
def test_every_placement_is_balanced_and_as_wide_as_the_racks(racks, partitions, draws):
    brokers = [BrokerLocation(id_, rack) for id_, rack in enumerate(racks)]
    factor = draws.draw(st.integers(1, len(brokers)))
    start, shift = draws.draw(st.integers(0, 99)), draws.draw(st.integers(0, 99))

    assignment = place_replicas(brokers, partitions, factor, start_index=start, shift=shift)

    assert sorted(assignment) == list(range(partitions))
    leaders = Counter(replicas[0] for replicas in assignment.values())
    assert max(leaders.values()) - min(leaders.get(id_, 0) for id_ in range(len(racks))) <= 1
    for replicas in assignment.values():
        assert len(set(replicas)) == factor
        assert len({racks[id_] for id_ in replicas}) == min(factor, len(set(racks)))
