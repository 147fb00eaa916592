"""The fixtures that installing odradek brings, as a project of somebody else meets them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # each of them takes a second or more

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def odradek_settings():
    return {"num.partitions": 3}
"""
TESTS = """
from confluent_kafka import Producer

seen = []

def partitions_of(cluster, topic):
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"hello")
    assert producer.flush(20) == 0
    return len(producer.list_topics(topic, timeout=20).topics[topic].partitions)

def test_one(odradek_cluster, odradek_session_cluster):
    assert partitions_of(odradek_cluster, "orders") == 3
    seen.extend([odradek_cluster, odradek_session_cluster])

def test_two(odradek_cluster, odradek_session_cluster):
    assert partitions_of(odradek_session_cluster, "orders") == 3
    assert odradek_cluster is not seen[0]
    assert odradek_session_cluster is seen[1]
"""


@pytest.mark.slow
def test_each_test_has_a_cluster_and_all_share_one(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=2)


def test_both_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester) -> None:
    listed = pytester.runpytest_subprocess("--fixtures")
    listed.stdout.fnmatch_lines(["odradek_cluster*", "*A cluster of this test alone.*"])
    listed.stdout.fnmatch_lines(["odradek_session_cluster*", "*One cluster for all tests of the run*"])


def test_three_brokers_for_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_three(odradek_three_brokers):
            odradek_three_brokers.kill(1)
            assert len(odradek_three_brokers.bootstrap.split(",")) == 3
        """
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)
