from __future__ import annotations

import asyncio
from collections.abc import Mapping

from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.acls import DENY_EVERYTHING, AclChanges, ClusterAcls, change_acls, read_all_acls
from odradek.common.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.coordination import paths
from odradek.coordination.payloads import Entries
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
LOGS = ResourcePattern(ResourceType.TOPIC, "logs-", PatternType.PREFIXED)


def allow(principal: str, operation: AclOperation = AclOperation.READ) -> AccessControlEntry:
    return AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW)


class Copy:
    """What a listener was notified of."""

    def __init__(self) -> None:
        self.acls: dict[ResourcePattern, Entries] = {}

    def replace_all(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        self.acls = dict(acls)

    def update(self, pattern: ResourcePattern, entries: Entries) -> None:
        self.acls[pattern] = entries


class Broker:
    """One session that watches the ACLs."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        self.store: MemoryStore = ensemble.open_session()
        self.seen = Copy()
        self.acls = ClusterAcls(lambda: self.store, self.seen)
        self.changes = AclChanges(self.store, self.acls)

    async def add(self, pattern: ResourcePattern, *entries: AccessControlEntry) -> None:
        await self.acls.change(pattern, lambda before: (*before, *entries))


def test_a_change_is_in_force_here_at_once_and_on_every_other_broker_soon():
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        here, there = Broker(ensemble), Broker(ensemble)
        await here.changes.start()
        await here.add(ORDERS, allow("User:alice"))
        await there.changes.start()
        assert there.seen.acls == {ORDERS: (allow("User:alice"),)}

        await here.add(LOGS, allow("User:bob"))
        assert here.seen.acls[LOGS] == (allow("User:bob"),)
        await there.acls.change(ORDERS, lambda _: ())
        await asyncio.sleep(1)
        for broker in (here, there):
            assert broker.seen.acls == {ORDERS: (), LOGS: (allow("User:bob"),)}
            await broker.changes.stop()

    run_in_virtual_time(scenario())


def test_the_nodes_are_those_of_kafka():
    async def scenario() -> None:
        broker = Broker(MemoryEnsemble())
        await broker.changes.start()
        await broker.add(ORDERS, allow("User:alice"))
        await broker.add(LOGS, allow("User:alice", AclOperation.IDEMPOTENT_WRITE))
        node = await broker.store.get("/kafka-acl/Topic/orders")
        assert node.payload == (
            b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],'
            b'"version":1}'
        )
        node = await broker.store.get("/kafka-acl-extended/prefixed/Topic/logs-")
        assert b'"operation":"IdempotentWrite"' in node.payload
        node = await broker.store.get("/kafka-acl-changes/acl_changes_0000000000")
        assert node.payload == b"TOPIC:orders"
        node = await broker.store.get("/kafka-acl-extended-changes/acl_changes_0000000000")
        assert node.payload == b'{"version":1,"resourceType":"TOPIC","name":"logs-","patternType":"PREFIXED"}'

        await broker.acls.change(ORDERS, lambda _: ())
        assert await broker.store.children("/kafka-acl/Topic") == []
        assert "TransactionalId" in await broker.store.children("/kafka-acl")
        await broker.changes.stop()

    run_in_virtual_time(scenario())


def test_two_who_change_the_same_acls_lose_nothing():
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.open_session()
        for path in paths.acl_paths():
            await store.ensure_path(path)
        users = [f"User:{number}" for number in range(10)]

        async def add(user: str) -> None:
            await change_acls(ensemble.open_session(), ORDERS, lambda old: (*old, allow(user)))

        await asyncio.gather(*map(add, users))
        found = await read_all_acls(store)
        assert sorted(entry.principal for entry in found[ORDERS]) == users

        async def remove(user: str) -> None:
            await change_acls(
                ensemble.open_session(),
                ORDERS,
                lambda old: tuple(one for one in old if one.principal != user),
            )

        await asyncio.gather(*map(remove, users))
        assert await read_all_acls(store) == {}

    run_in_virtual_time(scenario())


def test_a_change_without_effect_sends_no_notification():
    async def scenario() -> None:
        broker = Broker(MemoryEnsemble())
        await broker.changes.start()
        await broker.add(ORDERS, allow("User:alice"))
        await broker.add(ORDERS, allow("User:alice"))
        assert await broker.store.children(paths.ACL_CHANGES) == ["acl_changes_0000000000"]
        await broker.changes.stop()

    run_in_virtual_time(scenario())


def test_a_node_that_cannot_be_read_denies_everything():
    async def scenario() -> None:
        broker = Broker(MemoryEnsemble())
        await broker.store.ensure_path("/kafka-acl/Topic")
        await broker.store.create("/kafka-acl/Topic/orders", b"{")
        await broker.changes.start()
        assert broker.seen.acls == {ORDERS: DENY_EVERYTHING}
        await broker.changes.stop()

    run_in_virtual_time(scenario())
