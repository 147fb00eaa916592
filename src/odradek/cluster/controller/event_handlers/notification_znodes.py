"""Notification nodes for the controller: elections, changed states, failed disks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.event_handlers.admin_requests import AdminRequests
from odradek.cluster.controller.events import (
    IsrChangesNotified,
    LogDirEventsNotified,
    PreferredElectionChanged,
)
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
    """Owned by the controller's event loop. Notifications are removed once read, even damaged ones."""

    def __init__(self, session: ControllerSession) -> None:
        self._session = session
        self._context = session.context

    async def clear(self) -> None:
        """A new controller reads everything anyway: remove old notifications."""
        await self._isr_notes()
        await self._log_dir_notes()

    async def isr_changes_notified(self) -> Iterable[TopicPartition]:
        """State nodes were written by brokers: read them and notify every broker; returns which ones."""
        noted = {partition for note in await self._isr_notes() for partition in note}
        known = [one for one in noted if one in self._context.leadership]
        states = await read_states(self._session.store, known)
        self._context.leadership.update(states)
        self._session.batch.add_update_metadata(self._context.brokers, states)
        return states

    async def log_dir_events(self) -> set[int]:
        """The brokers with a failed disk, or with space again on a full one."""
        return set(await self._log_dir_notes())

    async def preferred_election_changed(self, admin_requests: AdminRequests) -> None:
        """A tool requests preferred leaders for some partitions."""
        watcher = self._session.watcher(PreferredElectionChanged())
        if await self._session.store.exists(paths.PREFERRED_REPLICA_ELECTION, watcher) is None:
            return
        for partitions in await self._pop([paths.PREFERRED_REPLICA_ELECTION], decode_partitions):
            results = await admin_requests.elect_leaders(Election.PREFERRED, partitions)
            logger.info(
                "electing preferred leaders on request: %s", {str(one): e.name for one, e in results.items()}
            )

    async def _isr_notes(self) -> list[tuple[TopicPartition, ...]]:
        watcher = self._session.watcher(IsrChangesNotified())
        names = await self._session.store.children(paths.ISR_CHANGE_NOTIFICATION, watcher)
        return await self._pop(
            [f"{paths.ISR_CHANGE_NOTIFICATION}/{name}" for name in names], decode_partitions
        )

    async def _log_dir_notes(self) -> list[int]:
        watcher = self._session.watcher(LogDirEventsNotified())
        names = await self._session.store.children(paths.LOG_DIR_EVENT_NOTIFICATION, watcher)
        nodes = [f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{name}" for name in names]
        return await self._pop(nodes, decode_log_dir_event)

    async def _pop(self, nodes: list[str], decode: Callable[[bytes], Content]) -> list[Content]:
        """Read notifications and remove them."""
        decoded = []
        for path in nodes:
            try:
                payload = (await self._session.store.get(path)).payload
                await self._session.fenced.write([Delete(path)])
                decoded.append(decode(payload))
            except (NoNode, OperationRefused):
                continue  # another controller removed it
            except DamagedPayload as damage:
                logger.error("%s is ignored: %s", path, damage)
        return decoded
