"""Nodes by which others ask the controller for something: elections, changed states, failed disks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from odradek.cluster.controller.admin_requests import AdminRequests
from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.events import IsrChangesNoted, LogDirEventsNoted, PreferredElectionChanged
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.state_nodes import read_states
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode, OperationRefused
from odradek.coordination.payloads import decode_log_dir_event, decode_partitions
from odradek.coordination.store import Delete

logger = logging.getLogger(__name__)

Content = TypeVar("Content")


class NotificationZnodes:
    """Owned by the controller's event loop, for one term. A note that was read is removed, damaged or not."""

    def __init__(self, office: ControllerSession) -> None:
        self._office = office
        self._context = office.context

    async def clear(self) -> None:
        """At the begin of a term everything is read anyway: old notes say nothing more."""
        await self._isr_notes()
        await self._log_dir_notes()

    async def isr_changes_noted(self) -> None:
        """State nodes were written by others: take over what they say and tell every broker."""
        noted = {partition for note in await self._isr_notes() for partition in note}
        known = [one for one in noted if one in self._context.leadership]
        states = await read_states(self._office.store, known)
        self._context.leadership.update(states)
        self._office.batch.tell_metadata(self._context.brokers, states)

    async def log_dir_events(self) -> set[int]:
        """The brokers that lost a disk, or have room on a full one."""
        return set(await self._log_dir_notes())

    async def preferred_election_changed(self, wishes: AdminRequests) -> None:
        """An old tool wants preferred leaders for some partitions."""
        watcher = self._office.watcher(PreferredElectionChanged())
        if await self._office.store.exists(paths.PREFERRED_REPLICA_ELECTION, watcher) is None:
            return
        for partitions in await self._take([paths.PREFERRED_REPLICA_ELECTION], decode_partitions):
            results = await wishes.elect_leaders(Election.PREFERRED, partitions)
            logger.info("preferred leaders by request: %s", {str(one): e.name for one, e in results.items()})

    async def _isr_notes(self) -> list[tuple[TopicPartition, ...]]:
        watcher = self._office.watcher(IsrChangesNoted())
        names = await self._office.store.children(paths.ISR_CHANGE_NOTIFICATION, watcher)
        return await self._take(
            [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names], decode_partitions
        )

    async def _log_dir_notes(self) -> list[int]:
        watcher = self._office.watcher(LogDirEventsNoted())
        names = await self._office.store.children(paths.LOG_DIR_EVENT_NOTIFICATION, watcher)
        nodes = [f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in names]
        return await self._take(nodes, decode_log_dir_event)

    async def _take(self, nodes: list[str], decode: Callable[[bytes], Content]) -> list[Content]:
        """Read notes and remove them."""
        taken = []
        for path in nodes:
            try:
                payload = (await self._office.store.get(path)).payload
                await self._office.fenced.write([Delete(path)])
                taken.append(decode(payload))
            except (NoNode, OperationRefused):
                continue  # another controller was faster
            except DamagedPayload as damage:
                logger.error("%s is ignored: %s", path, damage)
        return taken
