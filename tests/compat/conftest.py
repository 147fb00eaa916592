"""A broker as the command line starts it, one for each module, and the client libraries that meet it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from compat.clients.aio import Aiokafka
from compat.clients.face import Client
from compat.clients.librdkafka import Librdkafka
from compat.clients.pure_python import KafkaPython
from odradek.testing import Cluster

# kcat comes with the system or not at all (docs/compatibility.md): without it, its tests are not there.
collect_ignore = [] if shutil.which("kcat") else ["test_kcat.py"]

CLIENTS = {kind.name: kind for kind in (Librdkafka, Aiokafka, KafkaPython)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(process=True) as running:
        yield running


@pytest.fixture(scope="module")
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap


@pytest.fixture(scope="module")
def clients(bootstrap: str) -> Iterator[dict[str, Client]]:
    """All of them, by name."""
    made: dict[str, Client] = {name: kind(bootstrap) for name, kind in CLIENTS.items()}
    yield made
    for client in made.values():
        client.close()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, clients: dict[str, Client]) -> Client:
    """Each of them in turn."""
    return clients[request.param]


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
