"""Several real clients in one group at once: they come, go, are killed and come back, and nothing is lost.

Nothing is skipped, and nothing is read twice but what a killed member had read after its last commit.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LIBRARIES = ("odradek", "librdkafka", "aiokafka", "kafka-python")


def test_clients_of_four_libraries_share_a_group(scene):
    on = scene(8)
    on.write()
    members = [on.start(library) for library in LIBRARIES]
    on.wait_until_everybody_reads(*members)
    on.grow(11)
    on.wait_until_everybody_reads(*members)
    members[0].stop()
    on.write()
    on.check()


def test_what_a_killed_member_had_is_read_by_the_others(scene):
    on = scene(8)
    members = [on.start(library) for library in LIBRARIES]
    on.wait_until_everybody_reads(*members)
    on.write(200)
    members[2].kill()
    on.write()
    on.wait_until_all_is_read()
    members[0].kill()
    members[3].kill()
    on.write()
    on.check()


def test_members_change_what_they_subscribe_to(scene):
    on = scene(4)
    # kafka-python 3.0.12 hangs when it changes its mind and the others take longer than a poll to join again.
    *changing, constant = [on.start(library) for library in LIBRARIES]
    on.wait_until_everybody_reads(*changing, constant)
    more = f"{on.name}-more"
    on.make_topic(more, 4)
    for member in changing:
        member.subscribe(on.name, more)
        on.wait_until_somebody_reads(more, member)
    changing[0].subscribe(more)
    on.wait_until_everybody_reads(*changing, constant)
    on.check()


def test_cooperative_members_share_a_group(scene):
    on = scene(6)
    members = [on.start(library, assignor="cooperative-sticky") for library in ("librdkafka", "odradek")]
    on.wait_until_everybody_reads(*members)
    members.append(on.start("librdkafka", assignor="cooperative-sticky"))
    on.wait_until_everybody_reads(*members)
    members[0].kill()
    on.write()
    on.check()


def test_a_restart_of_the_broker_keeps_groups_and_offsets(scene, cluster):
    on = scene(4)
    members = [on.start(library) for library in LIBRARIES]
    on.wait_until_everybody_reads(*members)
    on.wait_until_all_is_read()
    cluster.restart()
    on.wait_until_everybody_reads(*members)
    on.check()


def test_members_of_the_new_protocol_come_go_and_are_killed(scene):
    on = scene(6)
    first, second = (on.start(library, protocol="consumer") for library in ("librdkafka", "odradek"))
    on.wait_until_everybody_reads(first, second)
    third = on.start("librdkafka", protocol="consumer")
    on.grow(9)
    on.wait_until_everybody_reads(first, second, third)
    second.kill()
    on.write()
    on.wait_until_all_is_read()
    first.stop()
    on.write()
    on.check()


def test_members_of_the_new_protocol_change_what_they_subscribe_to(scene):
    on = scene(4)
    members = [on.start(library, protocol="consumer") for library in ("librdkafka", "odradek")]
    on.wait_until_everybody_reads(*members)
    more = f"{on.name}-more"
    on.make_topic(more, 4)
    members[1].subscribe(on.name, more)
    on.wait_until_somebody_reads(more, members[1])
    members[0].subscribe(more)
    on.wait_until_somebody_reads(more, members[0])
    on.wait_until_everybody_reads(*members)
    on.check()


def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(scene):
    on = scene(6)
    classic = on.start("librdkafka")
    on.wait_until_everybody_reads(classic)
    new = on.start("librdkafka", protocol="consumer")
    on.wait_until_everybody_reads(classic, new)
    new.stop()
    on.wait_until_everybody_reads(classic)
    on.check()
