"""Apache Kafka 3.9 and we share the ACLs of one ZooKeeper: each sees at once what the other changes."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka_peer import PEERS, free_port
from odradek.broker.security.authorizer import AclAuthorizer
from odradek.cluster.acls import AclChanges, ClusterAcls
from odradek.common import acls as ours
from odradek.coordination.urls import open_store

pytestmark = [pytest.mark.java, pytest.mark.slow]

EVERYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
SETTINGS = ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "super.users=User:ANONYMOUS")


def peer(script: str, *arguments: str, **environment: str) -> None:
    given = os.environ | {"KAFKA_VERSION": "3.9.2"} | environment
    subprocess.run([str(PEERS / script), *arguments], env=given, check=True, capture_output=True, timeout=180)


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[str]:
    directory, port = str(tmp_path / "zookeeper"), free_port()
    peer("start-zookeeper", directory, str(port))
    yield f"localhost:{port}"
    peer("stop", directory)


@pytest.fixture
def admin(tmp_path: Path, zookeeper: str) -> Iterator[AdminClient]:
    """Of a Kafka in that ZooKeeper."""
    directory, port = str(tmp_path / "kafka"), free_port()
    peer("start", directory, str(port), *SETTINGS, ZOOKEEPER=zookeeper, KAFKA_HEAP_OPTS="-Xmx512M")
    yield AdminClient({"bootstrap.servers": f"localhost:{port}"})
    peer("stop", directory)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.05)


def test_kafka_and_we_see_each_others_changes(admin: AdminClient, zookeeper: str) -> None:
    def theirs() -> set[tuple[str, str, str]]:
        found = admin.describe_acls(EVERYTHING).result()
        return {(one.name, one.resource_pattern_type.name, one.operation.name) for one in found}

    def an_acl(name: str, kind: ResourcePatternType) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC, name, kind, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW
        )

    async def scenario() -> None:
        store = await open_store(f"zookeeper://{zookeeper}")
        authorizer = AclAuthorizer()
        acls = ClusterAcls(lambda: store, authorizer)
        changes = AclChanges(store, acls)
        await changes.start()

        def allows(operation: ours.AclOperation, topic: str) -> bool:
            return authorizer.allows("User:alice", "10.0.0.1", operation, ours.Resource.topic(topic))

        created = admin.create_acls(
            [an_acl("orders", ResourcePatternType.LITERAL), an_acl("log-", ResourcePatternType.PREFIXED)]
        )
        for future in created.values():
            await asyncio.to_thread(future.result)
        await until(lambda: allows(ours.AclOperation.READ, "orders"))
        await until(lambda: allows(ours.AclOperation.DESCRIBE, "log-7"))

        writes = ours.AccessControlEntry(
            "User:alice", "*", ours.AclOperation.WRITE, ours.AclPermissionType.ALLOW
        )
        prefixed = ours.ResourcePattern(ours.ResourceType.TOPIC, "log-", ours.PatternType.PREFIXED)
        orders = ours.ResourcePattern(ours.ResourceType.TOPIC, "orders")
        for pattern in (prefixed, orders):
            await acls.change(pattern, lambda before: (*before, writes))
        expected = {
            (name, kind, operation)
            for name, kind in (("orders", "LITERAL"), ("log-", "PREFIXED"))
            for operation in ("READ", "WRITE")
        }
        await until(lambda: theirs() == expected)

        await acls.change(orders, lambda _: ())
        await until(lambda: ("orders", "LITERAL", "READ") not in theirs())
        for future in admin.delete_acls([EVERYTHING]).values():
            await asyncio.to_thread(future.result)
        await until(lambda: not allows(ours.AclOperation.READ, "log-7"))
        assert authorizer.acls(ours.AclBindingFilter()) == []
        await changes.stop()
        await store.close()

    asyncio.run(scenario())
