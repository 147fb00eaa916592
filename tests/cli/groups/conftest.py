"""Groups that tests of `odradek groups` look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from client.eventually import eventually
from odradek import Consumer, Producer


@pytest.fixture
def filled(cli, topic, make_topic) -> str:
    """A topic of two partitions: five records at 1000, 2000 … in the first, one at 9000 in the other."""
    make_topic("--partitions", "2")
    with Producer(bootstrap_servers=cli.bootstrap) as producer:
        for number in range(5):
            producer.send(topic, b"%d" % number, partition=0, timestamp=1000 * (number + 1))
        producer.send(topic, b"5", partition=1, timestamp=9000)
    return str(topic)


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


@pytest.fixture
def join(cli, filled, group) -> Iterator[Callable[..., Consumer[Any, Any]]]:
    """Joins this test's group, reads the topic whole, and stays until the test is over."""
    with ExitStack() as members:

        def join(client_id: str, **settings: Any) -> Consumer[Any, Any]:
            given: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest", **settings}
            member = members.enter_context(
                Consumer(bootstrap_servers=cli.bootstrap, client_id=client_id, **given)
            )
            member.subscribe([filled])
            values: list[bytes] = []

            def has_read_all() -> bool:
                values.extend(record.value for record in member.poll(0.1))
                return len(values) == 6

            eventually(has_read_all)
            member.commit()
            return member

        yield join


@pytest.fixture
def left(join: Callable[..., Consumer[Any, Any]], group: str) -> str:
    """A group that has read everything and that nobody is in any more."""
    join("gone").close()
    return group
