"""Fixtures for pytest: a cluster per test, or one for the whole run. Installing odradek brings them.

Settings come from the fixture `odradek_settings`: override it in a conftest.py, a class or a module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from odradek import testing


@pytest.fixture(scope="session")
def odradek_settings() -> Mapping[str, str]:
    """The broker's settings, by Kafka's names; none, unless you override this."""
    return {}


@pytest.fixture(scope="session")
def odradek_brokers() -> int:
    """How many brokers the clusters have; one, unless you override this."""
    return 1


@pytest.fixture
def odradek_cluster(odradek_settings: Mapping[str, str], odradek_brokers: int) -> Iterator[testing.Cluster]:
    """A cluster of this test alone."""
    with testing.Cluster(odradek_settings, brokers=odradek_brokers) as cluster:
        yield cluster


@pytest.fixture
def odradek_three_brokers(odradek_settings: Mapping[str, str]) -> Iterator[testing.Cluster]:
    """Three brokers, each in a process of its own, for this test alone."""
    with testing.Cluster(odradek_settings, brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def odradek_session_cluster(
    odradek_settings: Mapping[str, str], odradek_brokers: int
) -> Iterator[testing.Cluster]:
    """One cluster for all tests of the run that ask for it: give each its own topics."""
    with testing.Cluster(odradek_settings, brokers=odradek_brokers) as cluster:
        yield cluster
