"""Runs async tests of this folder on an event loop, and gives them sessions at each kind of store."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from coordination.sessions import MemorySessions, Sessions, SqliteSessions, ZooKeeperSessions
from faults.broker_process import free_port

PEERS = Path(__file__).parents[2] / "bench" / "peers"
TEST_TIMEOUT_S = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(_run(pyfuncitem, arguments), TEST_TIMEOUT_S))
    return True


async def _run(pyfuncitem: pytest.Function, arguments: dict[str, object]) -> None:
    try:
        await pyfuncitem.obj(**arguments)
    finally:
        for argument in arguments.values():
            if isinstance(argument, Sessions):
                await argument.close()


@pytest.fixture(scope="session")
def zookeeper_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("zookeeper")
    port = free_port()
    start = [PEERS / "start-zookeeper", directory, str(port)]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    yield f"localhost:{port}"
    subprocess.run([PEERS / "stop", directory], check=True)


_chroots = count()
REAL_STORES = ["sqlite", pytest.param("zookeeper", marks=pytest.mark.java)]


@pytest.fixture(params=["memory", *REAL_STORES])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Sessions:
    """Sessions at one store of each kind."""
    return _sessions(request, tmp_path)


@pytest.fixture(params=REAL_STORES)
def real_sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Sessions:
    """As `sessions`, for what several processes do."""
    return _sessions(request, tmp_path)


@pytest.fixture
def sqlite_sessions(tmp_path: Path) -> SqliteSessions:
    return SqliteSessions(tmp_path)


def _sessions(request: pytest.FixtureRequest, tmp_path: Path) -> Sessions:
    if request.param == "memory":
        return MemorySessions()
    if request.param == "sqlite":
        return SqliteSessions(tmp_path)
    servers = request.getfixturevalue("zookeeper_servers")
    return ZooKeeperSessions(f"zookeeper://{servers}/odradek/test-{next(_chroots)}")
