from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from odradek.broker.requests.served_apis import SERVED
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, FindCoordinatorRequest

from .on_this_loop import a_broker, run, until

A_START = """
import sys
import odradek.cli.start
print(*sys.modules)
"""
# What is big or seldom needed; a broker is ready without it.
NOT_NEEDED = {
    "odradek.broker.coordinators.group_coordination",
    "odradek.broker.handlers.join_group",
    "odradek.broker.metrics_listener",
    "odradek.client",
    "odradek.coordination.zookeeper",
    "odradek.groups.service",
    "email",
    "http",
    "importlib.metadata",
    "kazoo",
    "prometheus_client",
    "pyarrow",
    "re2",
    "rich",
    "tomllib",
}


def test_a_start_imports_nothing_that_it_can_be_ready_without() -> None:
    reported = subprocess.run([sys.executable, "-c", A_START], check=True, capture_output=True, text=True)

    assert NOT_NEEDED & set(reported.stdout.split()) == set()


def test_the_rest_is_there_once_it_has_been_loaded(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            await server.load_the_rest()

            answer = await wire.ask(
                ApiKey.API_VERSIONS,
                4,
                ApiVersionsRequest(client_software_name="a", client_software_version="1"),
            )

            assert [row.api_key for row in answer.api_keys] == list(SERVED)
            for api_key in SERVED:
                assert f"odradek.broker.handlers.{api_key.name.lower()}" in sys.modules

    run(main)


def test_the_first_partition_of_the_offsets_brings_the_group_coordinator(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, "offsets.topic.num.partitions=1") as (server, wire):
            services = server.services
            waiting = services.leaderships[CONSUMER_OFFSETS]

            await wire.ask(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key="readers"))
            await until(lambda: services.leaderships[CONSUMER_OFFSETS] is not waiting)

            assert await services.groups.list_groups((), ()) == []

    run(main)


def test_a_broker_that_stops_begins_to_coordinate_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, _):
            server.services.close_coordinators()

            assert server.services.leaderships == {}

    run(main)
