"""The cluster's ACLs in the store: read, changed by conditional writes, and watched for changes by others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from odradek.cluster.change_notifications import ChangeNotifications
from odradek.common.acls import (
    RESOURCE_TYPES,
    WILDCARD_HOST,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
)
from odradek.common.clock import Clock
from odradek.coordination import paths
from odradek.coordination.errors import BadVersion, DamagedPayload, NodeExists, NoNode
from odradek.coordination.payloads import (
    Entries,
    decode_acl_change,
    decode_acls,
    encode_acl_change,
    encode_acls,
)
from odradek.coordination.store import Create, Delete, Operation, SetData, Store

logger = logging.getLogger(__name__)

# Used where a node cannot be read: only super users are authorized.
DENY_EVERYTHING = (
    AccessControlEntry(WILDCARD_PRINCIPAL, WILDCARD_HOST, AclOperation.ALL, AclPermissionType.DENY),
)


class AclListener(Protocol):
    """Notified of the ACLs in the store; called on the broker's loop."""

    def replace_all(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        """Every ACL there is."""
        ...

    def update(self, pattern: ResourcePattern, entries: Entries) -> None:
        """The ACLs of one pattern."""
        ...


async def read_acls(store: Store, pattern: ResourcePattern) -> Entries:
    """The ACLs of one pattern; a damaged node denies everything to everyone."""
    path = paths.acls(pattern)
    try:
        return decode_acls((await store.get(path)).payload)
    except NoNode:
        return ()
    except DamagedPayload as damage:
        logger.error(
            "%s cannot be read, so everything is denied there; repair or delete it: %s", path, damage
        )
        return DENY_EVERYTHING


async def read_all_acls(store: Store) -> dict[ResourcePattern, Entries]:
    """Every ACL of the cluster."""
    found = {}
    for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
        for resource_type in RESOURCE_TYPES:
            for name in await store.children(paths.acls_of_type(pattern_type, resource_type)):
                pattern = ResourcePattern(resource_type, name, pattern_type)
                found[pattern] = await read_acls(store, pattern)
    return found


async def change_acls(
    store: Store, pattern: ResourcePattern, change: Callable[[Entries], Entries]
) -> Entries:
    """Replace the ACLs of a pattern by what `change` makes of them, and notify every broker.

    `change` is called again after a concurrent write.
    """
    path = paths.acls(pattern)
    while True:
        version: int | None = None
        before: Entries = ()
        with suppress(NoNode):
            node = await store.get(path)
            version, before = node.stat.version, decode_acls(node.payload)
        after = tuple(dict.fromkeys(change(before)))
        if set(after) == set(before):
            return before
        notification = Create(paths.acl_change(pattern), encode_acl_change(pattern), sequential=True)
        try:
            await store.multi([_write(path, version, after), notification])
        except (BadVersion, NodeExists, NoNode) as refusal:
            # A node that is to be created has no parent: trying again would not help.
            is_lost = version is None and isinstance(refusal, NoNode)
            if refusal.operation_index != 0 or is_lost:
                raise
            continue
        return after


def _write(path: str, version: int | None, entries: Entries) -> Operation:
    if version is None:
        return Create(path, encode_acls(entries))
    return SetData(path, encode_acls(entries), version) if entries else Delete(path, version)


class ClusterAcls:
    """Reads and changes the ACLs in the store, and keeps a listener up to date with them.

    Owned by the broker's event loop; `store` returns the present session. Reads are made one at a time, so
    that the listener never keeps the older of two results.
    """

    def __init__(self, store: Callable[[], Store], listener: AclListener) -> None:
        self._store = store
        self._listener = listener
        self._reading = asyncio.Lock()

    async def load_all(self) -> None:
        """Read every ACL."""
        async with self._reading:
            self._listener.replace_all(await read_all_acls(self._store()))

    async def load(self, pattern: ResourcePattern) -> None:
        """Read the ACLs of one pattern."""
        async with self._reading:
            self._listener.update(pattern, await read_acls(self._store(), pattern))

    async def change(self, pattern: ResourcePattern, change: Callable[[Entries], Entries]) -> None:
        """Change the ACLs of one pattern; the change is in force here when this returns."""
        await change_acls(self._store(), pattern, change)
        await self.load(pattern)


class AclChanges:
    """Reads ACLs again after they were changed. Owned by the broker's event loop; made for one session."""

    def __init__(self, store: Store, acls: ClusterAcls, clock: Clock | None = None) -> None:
        self._store = store
        self._acls = acls
        self._notifications = tuple(
            ChangeNotifications(store, parent, self._on_change, clock)
            for parent in (paths.ACL_CHANGES, paths.EXTENDED_ACL_CHANGES)
        )

    async def start(self) -> None:
        """Watch, then read everything, so that no change between the two is lost."""
        for path in paths.acl_paths():
            await self._store.ensure_path(path)
        for one in self._notifications:
            await one.start()
        await self._acls.load_all()

    async def stop(self) -> None:
        """Stop watching."""
        for one in self._notifications:
            await one.stop()

    async def _on_change(self, payload: bytes) -> None:
        await self._acls.load(decode_acl_change(payload))
