"""Brokers that the tests of clients share, and a way to them that can fail."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from client.proxy import Proxy
from odradek.testing import Cluster

QUICK_GROUPS = {
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One broker for all tests that give their topics names of their own."""
    with Cluster(QUICK_GROUPS, num_partitions=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[Proxy, Cluster]]:
    """A broker that calls itself by the address of a proxy."""
    with Proxy() as proxy:
        proxy.upstream = f"127.0.0.1:{free_port()}"
        listeners = {
            "listeners": f"PLAINTEXT://{proxy.upstream}",
            "advertised.listeners": f"PLAINTEXT://{proxy.address}",
        }
        with Cluster(listeners, num_partitions=1) as cluster:
            yield proxy, cluster


@pytest.fixture
def proxy(proxied: tuple[Proxy, Cluster]) -> Iterator[Proxy]:
    """The proxy, whole again after each test."""
    yield proxied[0]
    proxied[0].resume()
    proxied[0].come_up()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of this test's own."""
    return request.node.name.replace("[", "-").replace("]", "").replace(" ", "-")[:200]
