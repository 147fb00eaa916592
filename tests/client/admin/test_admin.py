"""Both faces of the admin client: on a loop, and without one."""

from __future__ import annotations

import asyncio
import socket

import pytest

from odradek.client.admin.admin import Admin, AsyncAdmin
from odradek.client.errors import ClientClosed, DeadlineExceeded, NoBrokersAvailable
from odradek.common.errors import ConfigError


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unused.getsockname()[1]}"


def test_the_same_calls_serve_code_on_a_loop(bootstrap):
    async def scenario() -> None:
        async with AsyncAdmin(bootstrap_servers=bootstrap) as admin:
            descriptions = await asyncio.gather(*(admin.describe_cluster() for _ in range(20)))
            assert len(set(descriptions)) == 1
        with pytest.raises(ClientClosed):
            await admin.describe_cluster()

    asyncio.run(scenario())


def test_every_call_of_one_face_is_a_call_of_the_other():
    calls = {name for name in dir(AsyncAdmin) if not name.startswith("_")}
    assert calls - {"config", "brokers"} <= {name for name in dir(Admin) if not name.startswith("_")}
    assert Admin.create_topic.__doc__ == AsyncAdmin.create_topic.__doc__


def test_a_closed_client_says_so(ours):
    admin = Admin(bootstrap_servers=ours)
    admin.describe_cluster()
    admin.close()
    admin.close()
    with pytest.raises(ClientClosed, match="this admin client is closed"):
        admin.list_topics()


def test_a_closed_client_that_was_never_used_says_so(ours):
    async def scenario() -> None:
        admin = AsyncAdmin(bootstrap_servers=ours)
        await admin.close()
        with pytest.raises(ClientClosed):
            await admin.list_topics()

    asyncio.run(scenario())


def test_an_unreachable_cluster_is_reported_within_the_configured_time(nobody):
    with (
        Admin(bootstrap_servers=nobody, default_api_timeout_ms=200) as admin,
        pytest.raises(DeadlineExceeded, match="listing topics") as caught,
    ):
        admin.list_topics()
    assert isinstance(caught.value.last, NoBrokersAvailable)
    assert "the connection was refused" in str(caught.value)


def test_connect_reports_an_unreachable_cluster_at_once(nobody):
    with Admin(bootstrap_servers=nobody) as admin, pytest.raises(NoBrokersAvailable, match="refused"):
        admin.connect()


def test_a_wrong_setting_is_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="did you mean bootstrap_servers"):
        Admin(bootstrap_server="localhost:9092")
