"""Java's consumer in one group with all the others: killed, restarted, and beside a topic that grows."""

from __future__ import annotations

import pytest

from groups.scene import JAVA, wait_for

pytestmark = [pytest.mark.java, pytest.mark.slow]

OTHERS = ("odradek", "librdkafka", "aiokafka", "kafka-python")


def test_java_is_killed_in_a_group_of_five_libraries(scene):
    on = scene(10)
    java, *others = (on.start(library) for library in (JAVA, *OTHERS))
    on.wait_until_everybody_reads(java, *others)
    on.write(200)
    java.kill()
    on.write()
    on.wait_until_all_is_read()
    back = on.start(JAVA)
    on.wait_until_everybody_reads(back, *others)
    on.grow(15)
    on.wait_until_everybody_reads(back, *others)
    others[0].kill()
    on.write()
    on.check()


def test_java_is_killed_in_a_group_of_the_new_protocol(scene):
    on = scene(6)
    java, librdkafka, ours = (
        on.start(library, protocol="consumer") for library in (JAVA, "librdkafka", "odradek")
    )
    on.wait_until_everybody_reads(java, librdkafka, ours)
    on.write(200)
    java.kill()
    on.write()
    on.wait_until_all_is_read()
    back = on.start(JAVA, protocol="consumer")
    on.grow(9)
    on.wait_until_everybody_reads(back, librdkafka, ours)
    more = f"{on.name}-more"
    on.make_topic(more, 3)
    ours.subscribe(on.name, more)
    on.wait_until_somebody_reads(more, ours)
    ours.kill()
    librdkafka.subscribe(on.name, more)
    on.write()
    on.check()


def test_a_static_member_of_java_is_killed_and_comes_back_unnoticed(scene):
    on = scene(4)
    # A Java machine takes a while to start.
    java = {"library": JAVA, "instance": "i1", "session_ms": "60000"}
    other, killed = on.start("odradek", instance="i2", session_ms="60000"), on.start(**java)
    wait_for(lambda: killed.assignments and other.assignments[-1:] and len(other.assignments[-1]) == 2)
    on.wait_until_everybody_reads(other, killed)
    before = list(other.assignments)

    killed.kill()
    back = on.start(**java)
    on.wait_until_everybody_reads(other, back)

    assert back.assignments == [killed.assignments[-1]], "the same partitions"
    assert other.assignments == before, "no rebalance"
    on.check()
