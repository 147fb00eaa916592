"""A ZooKeeper whose ACLs refuse access to all or some paths: the error names the path and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from broker.on_this_loop import run
from faults.cluster.zookeepers import ZooKeepers
from odradek.broker.server import BrokerServer
from odradek.broker.settings.load import load
from odradek.coordination.errors import StoreAccessDenied
from odradek.coordination.store import Check, Create
from odradek.coordination.urls import open_store

pytestmark = pytest.mark.java
SASL_ONLY = (
    "-Dzookeeper.sessionRequireClientSASLAuth=true",
    "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
)


@pytest.fixture
def locked_node(zookeeper_servers: str) -> Iterator[str]:
    """A chroot of which somebody else owns the node /brokers."""
    client = KazooClient(hosts=zookeeper_servers)
    client.start()
    chroot = f"/locked-{uuid4()}"
    client.ensure_path(chroot)
    client.create(f"{chroot}/brokers", acl=[make_digest_acl("somebody", "else", all=True)])
    yield zookeeper_servers + chroot
    client.stop()
    client.close()


async def test_an_acl_that_names_somebody_else_is_reported_with_its_path(locked_node: str) -> None:
    store = await open_store(f"zookeeper://{locked_node}")
    try:
        with pytest.raises(
            StoreAccessDenied, match=r"refuses /brokers: its ACL does not allow this: let it allow"
        ):
            await store.get("/brokers")
        with pytest.raises(StoreAccessDenied, match="refuses /brokers/ids: its ACL"):
            await store.multi([Check("/"), Create("/mine"), Create("/brokers/ids"), Create("/after")])
        assert await store.children("/") == ["brokers"]
    finally:
        await store.close()


@pytest.mark.slow
@pytest.mark.parametrize("chroot", ["", "/kafka"])
def test_a_broker_does_not_start_on_an_ensemble_that_wants_a_login(tmp_path: Path, chroot: str) -> None:
    servers = ZooKeepers(tmp_path, 1, *SASL_ONLY)
    fatal: list[Exception] = []

    async def start() -> None:
        url = f"zookeeper://{servers.connect}{chroot}"
        config = load(None, ["broker.id=1", f"log.dirs={tmp_path / 'data'}", f"odradek.coordination={url}"])
        (tmp_path / "data").mkdir()
        with pytest.raises(
            StoreAccessDenied, match="clients must log in by SASL, which odradek does not offer"
        ):
            await BrokerServer(config.config, on_fatal=fatal.append).start()
        assert not [path for path in (tmp_path / "data").iterdir() if path.is_dir()]

    try:
        servers.start_all()
        run(start)
    finally:
        servers.end()
