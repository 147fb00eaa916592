"""Coordinators are found by the partition of a group's own, whatever the others of the topic are like."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.coordinators.internal_topics import with_fitting_min_isr
from odradek.cluster.metadata import MetadataImage
from odradek.common.error_codes import ErrorCode
from odradek.coordinator.partitioning import partition_for
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

from ..conftest import Wire
from ..on_this_loop import a_broker, run

PARTITIONS = 3
GROUPS = ["a", "b", "c"]
NO_LEADER = -1


async def coordinators(wire: Wire, *groups: str) -> list[FindCoordinatorResponse.Coordinators]:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups))
    response = await wire.ask(ApiKey.FIND_COORDINATOR, 4, request)
    assert isinstance(response, FindCoordinatorResponse)
    return response.coordinators


def lose_leader(image: MetadataImage, index: int) -> None:
    topic = image.topics[CONSUMER_OFFSETS]
    without = topic.partitions | {index: topic.partitions[index]._replace(leader=NO_LEADER)}
    image.topics[CONSUMER_OFFSETS] = topic._replace(partitions=without)


def test_a_partition_without_leader_keeps_only_its_own_groups_from_their_coordinator(tmp_path: Path) -> None:
    assert {partition_for(group, PARTITIONS) for group in GROUPS} == set(range(PARTITIONS))

    async def scenario() -> None:
        async with a_broker(tmp_path, f"offsets.topic.num.partitions={PARTITIONS}") as (server, wire):
            (made,) = await coordinators(wire, "a")
            assert made.error_code == ErrorCode.NONE
            lost = partition_for("b", PARTITIONS)
            lose_leader(server.services.image, lost)

            a, b, c = await coordinators(wire, *GROUPS)

            assert [(one.error_code, one.node_id) for one in (a, c)] == [(ErrorCode.NONE, 0)] * 2
            assert (b.error_code, b.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
            assert b.error_message == f"{CONSUMER_OFFSETS}-{lost} has no leader"

    run(scenario)


@pytest.mark.parametrize(
    ("factor", "wanted", "fitting"), [(1, 1, 1), (1, 2, 1), (2, 2, 1), (3, 2, 2), (3, 3, 2), (5, 2, 2)]
)
def test_one_replica_of_an_internal_topic_may_be_down(factor: int, wanted: int, fitting: int) -> None:
    named = with_fitting_min_isr({"min.insync.replicas": str(wanted)}, factor, 7)
    inherited = with_fitting_min_isr({}, factor, wanted)

    assert named["min.insync.replicas"] == str(fitting)
    assert int(inherited.get("min.insync.replicas", wanted)) == fitting
