"""A broker whose groups notice quickly who is gone, and a scene for each test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from groups.scene import MakeScene, Scene
from odradek.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {
        "group.min.session.timeout.ms": 1_000,
        "group.consumer.heartbeat.interval.ms": 200,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.session.timeout.ms": 3_000,
        "group.consumer.min.session.timeout.ms": 3_000,
        "group.consumer.assignment.interval.ms": 0,
    }
    with Cluster(settings) as running:
        yield running


@pytest.fixture
def scene(cluster: Cluster, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeScene]:
    made: list[Scene] = []

    def make(partitions: int) -> Scene:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", request.node.name)
        made.append(Scene(cluster, name, partitions, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()
