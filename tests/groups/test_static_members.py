"""Members with an instance id (KIP-345): not missed while away for a moment, fenced when replaced."""

from __future__ import annotations

import pytest

from groups.scene import RunningMember, Scene, wait_for
from odradek import Admin
from odradek.client.admin.base import require
from odradek.client.admin.configs import ConfigChange, ConfigResource, ResourceType

pytestmark = pytest.mark.slow

# Whoever comes back does so in time, however busy the machine.
LONG_SESSION_MS = "60000"


def has_settled(on: Scene, *members: RunningMember) -> bool:
    """Whether each partition was last assigned to exactly one of these."""
    partitions = [place for member in members if member.assignments for place in member.assignments[-1]]
    wanted = [(topic, number) for topic, count in on.partitions.items() for number in range(count)]
    return all(member.assignments for member in members) and sorted(partitions) == sorted(wanted)


def give_long_session(on: Scene) -> None:
    """To a group of the new protocol, in which the broker decides."""
    group = ConfigResource(ResourceType.GROUP, on.name)
    with Admin(bootstrap_servers=on.cluster.bootstrap) as admin:
        long_session = ConfigChange("consumer.session.timeout.ms", LONG_SESSION_MS)
        require(admin.alter_configs({group: [long_session]})[group])


@pytest.mark.parametrize("library", ["odradek", "librdkafka", "aiokafka", "kafka-python"])
def test_a_killed_member_comes_back_to_its_partitions_and_nobody_else_notices(scene, library):
    on = scene(4)
    other = on.start("librdkafka", instance="i2", session_ms=LONG_SESSION_MS)
    killed = on.start(library, instance="i1", session_ms=LONG_SESSION_MS)
    wait_for(lambda: has_settled(on, other, killed))
    on.wait_until_everybody_reads(killed, other)
    before = list(other.assignments)

    killed.kill()
    back = on.start(library, instance="i1", session_ms=LONG_SESSION_MS)
    on.wait_until_everybody_reads(back, other)

    assert back.assignments == [killed.assignments[-1]], "the same partitions"
    assert other.assignments == before, "no rebalance"
    on.check()


def test_a_member_that_stays_away_for_a_session_loses_its_partitions(scene):
    on = scene(4)
    other, killed = on.start("odradek", instance="i2"), on.start("librdkafka", instance="i1")
    wait_for(lambda: has_settled(on, other, killed))
    killed.kill()
    wait_for(lambda: has_settled(on, other))
    on.write()
    on.check()


@pytest.mark.parametrize("library", ["odradek", "librdkafka"])
def test_a_second_member_with_the_instance_id_fences_the_first(scene, library):
    on = scene(4)
    other, first = on.start("librdkafka", instance="i2"), on.start(library, instance="i1")
    wait_for(lambda: has_settled(on, other, first))
    on.wait_until_everybody_reads(first, other)

    second = on.start(library, instance="i1")
    wait_for(lambda: first.is_fenced)
    on.wait_until_everybody_reads(second, other)

    assert second.assignments == [first.assignments[-1]]
    first.stop()
    on.check()


@pytest.mark.parametrize("library", ["odradek", "librdkafka"])
def test_a_member_of_the_new_protocol_that_goes_for_a_while_comes_back_to_its_partitions(scene, library):
    on = scene(4)
    give_long_session(on)
    other, gone = (
        on.start("librdkafka", instance="i2", protocol="consumer"),
        on.start(library, instance="i1", protocol="consumer"),
    )
    on.wait_until_everybody_reads(gone, other)
    on.wait_until_all_is_read()
    before = list(other.assignments)

    gone.stop()
    back = on.start(library, instance="i1", protocol="consumer")
    on.wait_until_everybody_reads(back, other)

    assert {one[:2] for one in back.read} <= {one[:2] for one in gone.read}
    assert other.assignments == before, "no rebalance"
    on.check()


def test_the_instance_id_of_a_killed_member_of_the_new_protocol_is_taken_until_it_is_missed(scene):
    on = scene(2)
    give_long_session(on)
    killed = on.start("odradek", instance="i1", protocol="consumer")
    on.wait_until_everybody_reads(killed)

    killed.kill()
    refused = on.start("odradek", instance="i1", protocol="consumer")

    wait_for(lambda: refused.process.poll() is not None)
    assert "UnreleasedInstanceId" in refused.complaints.read_text()
