"""The controller of this broker: takes part in elections and, while active, handles one event at a time.

The first to create the ephemeral /controller wins; in the same transaction it raises /controller_epoch, and
every write of a predecessor, which checks that node's version, fails from then on.

    SUSPENDED   no event is handled, no request is sent
    2/3 of the session time-out after the last contact with the store: the controller resigns
    CONNECTED   continues if /controller is still ours, else takes part in the election
    EXPIRED     resigned; a new Controller on a new session takes part in the election
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID

from odradek.cluster import tasks
from odradek.cluster.controller import events
from odradek.cluster.controller.active_controller import ActiveController, ActiveControllerSettings
from odradek.cluster.controller.channels import Channels, Connect
from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.counters import ElectionCounters
from odradek.cluster.controller.fenced_store import ControllerMoved, FencedStore
from odradek.cluster.controller.requests import ControlRequest, RequestBatch
from odradek.cluster.controller.state.context import ControllerContext
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.transitions import Transitions
from odradek.cluster.random_ids import random_uuid
from odradek.common.clock import Clock, SystemClock
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import (
    BadVersion,
    DamagedPayload,
    NodeExists,
    NoNode,
    SessionExpired,
    StoreAccessDenied,
    StoreClosed,
    StoreUnavailable,
)
from odradek.coordination.payloads import (
    ControllerRegistration,
    decode_controller_epoch,
    encode_controller_epoch,
)
from odradek.coordination.store import Create, NodeStat, Operation, SessionState, SetData, Store, WatchEvent
from odradek.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1
# As in Kafka 3.9: a new controller does not wait for the whole interval.
FIRST_REBALANCE_S = 5.0

Result = TypeVar("Result")


def never_unclean(topic: str) -> bool:
    """The default: no leader rather than one that lost records."""
    return False


async def nothing_to_load(topic: str) -> None:
    """The default: the settings of topics are known."""


class ControllerSettings(NamedTuple):
    """The controller's part of the configuration."""

    inter_broker_listener: str = "PLAINTEXT"
    is_auto_leader_rebalance_enabled: bool = True
    leader_imbalance_check_interval_s: float = 300.0
    term: ActiveControllerSettings = ActiveControllerSettings()


class Controller:
    """Runs on one session at the store. Owned by the broker's event loop; after EXPIRED make a new one."""

    def __init__(
        self,
        store: Store,
        broker_id: int,
        settings: ControllerSettings,
        connect: Connect,
        *,
        session_timeout_ms: int = 18_000,
        allows_unclean: Callable[[str], bool] = never_unclean,
        load_settings: Callable[[str], Awaitable[None]] = nothing_to_load,
        new_topic_id: Callable[[], UUID] = random_uuid,
        clock: Clock | None = None,
        on_controller: Callable[[], None] = lambda: None,
        elections: ElectionCounters | None = None,
    ) -> None:
        """`on_controller` is called when another broker has become controller, or this one."""
        self._store = store
        self._broker_id = broker_id
        self._settings = settings
        self._session_timeout_ms = session_timeout_ms
        self._connect = connect
        self._allows_unclean = allows_unclean
        self._load_settings = load_settings
        self._new_topic_id = new_topic_id
        self._clock = clock or SystemClock()
        self._events: asyncio.Queue[events.Event] = asyncio.Queue()
        self._is_connected = asyncio.Event()
        self._is_connected.set()
        self._term: ActiveController | None = None
        self._task: asyncio.Task[None] | None = None
        self._rebalance_timer: asyncio.TimerHandle | None = None
        self._contact_timer: asyncio.TimerHandle | None = None
        self._is_handling = False
        self._on_elected = on_controller
        self._elections = elections or ElectionCounters()
        self.controller_id: int | None = None
        """The controller as last read from the store."""

    # Called by the owner

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._term is not None

    @property
    def is_idle(self) -> bool:
        """Whether every event so far was handled."""
        return self._events.empty() and not self._is_handling

    @property
    def context(self) -> ControllerContext | None:
        """The controller's state, for metrics and tests; None while another broker is controller."""
        return None if self._term is None else self._term.context

    async def start(self) -> None:
        """Take part in the election; returns once a controller is elected, or the first attempt has failed.

        Only StoreAccessDenied is raised: without access no other attempt would succeed.
        """
        self._store.add_listener(self._on_session)
        try:
            await self._elect()
        except StoreAccessDenied:
            raise
        except (ControllerMoved, StoreUnavailable) as error:
            self._give_up(str(error))
            self._events.put_nowait(events.ElectController())
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop acting. Another broker is elected when the session ends."""
        await tasks.cancel(self._task)
        term = self._term
        self._give_up("the broker stops")
        self._refuse_all()
        if term is not None:
            await term.session.channels.close()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """A leader's request to change its in-sync replicas."""
        answer: asyncio.Future[AlterPartitionResponse] = asyncio.get_running_loop().create_future()
        self._ask(events.AlterPartitionRequested(request, _resolve(answer)))
        return await answer

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """A broker's request to move its leaders, because it will stop."""
        answer: asyncio.Future[ControlledShutdownResponse] = asyncio.get_running_loop().create_future()
        self._ask(events.ControlledShutdownRequested(request, _resolve(answer)))
        return await answer

    async def elect_leaders(
        self, election: Election, partitions: tuple[TopicPartition, ...] | None
    ) -> events.ElectionResults | ErrorCode:
        """An administrator's request; an error if this broker is not the controller."""
        answer: asyncio.Future[events.ElectionResults | ErrorCode] = (
            asyncio.get_running_loop().create_future()
        )
        self._ask(events.ElectionRequested(election, partitions, _resolve(answer)))
        return await answer

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, allows_other_factor: bool = True
    ) -> events.ReassignmentResults | ErrorCode:
        """An administrator's request; an error if this broker is not the controller."""
        answer: asyncio.Future[events.ReassignmentResults | ErrorCode] = (
            asyncio.get_running_loop().create_future()
        )
        self._ask(events.ReassignmentRequested(targets, allows_other_factor, _resolve(answer)))
        return await answer

    async def list_reassignments(
        self, partitions: tuple[TopicPartition, ...] | None
    ) -> events.ReassignmentsInProgress | ErrorCode:
        """An administrator's request; an error if this broker is not the controller."""
        answer: asyncio.Future[events.ReassignmentsInProgress | ErrorCode] = (
            asyncio.get_running_loop().create_future()
        )
        self._ask(events.ReassignmentsListed(partitions, _resolve(answer)))
        return await answer

    def topic_config_changed(self, topic: str) -> None:
        """A topic may now allow an unclean election."""
        self._events.put_nowait(events.TopicConfigChanged(topic))

    # The loop

    async def _run(self) -> None:
        while True:
            event = await self._events.get()
            self._is_handling = True
            await self._is_connected.wait()
            try:
                await self._handle(event)
            except ControllerMoved as moved:
                self._give_up(str(moved))
                self._events.put_nowait(events.ElectController())
            except StoreUnavailable as error:
                # A write may or may not have happened: the next controller reads everything.
                self._give_up(str(error))
                await asyncio.sleep(RETRY_BACKOFF_S)
                self._events.put_nowait(events.ElectController())
            except (SessionExpired, StoreClosed):
                self._refuse_all()
                return
            except Exception:  # a task root: a bug in one event must not leave the cluster without controller
                logger.exception("event %s failed", event)
                self._give_up("an event failed")
                await asyncio.sleep(RETRY_BACKOFF_S)
                self._events.put_nowait(events.ElectController())
            finally:
                _refuse(event)
                self._is_handling = False

    async def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.ElectController):
            await self._elect()
        elif self._term is not None:
            await self._term.handle(event)

    def _ask(self, event: events.Event) -> None:
        if self._task is None or self._task.done():
            _refuse(event)
        else:
            self._events.put_nowait(event)

    def _refuse_all(self) -> None:
        """Answer all pending requests."""
        while not self._events.empty():
            _refuse(self._events.get_nowait())

    # Election

    async def _elect(self) -> None:
        """Become the controller if there is none; else wait for the watch."""
        while True:
            stat = await self._store.exists(paths.CONTROLLER, self._on_controller)
            is_ours = stat is not None and stat.ephemeral_owner == self._store.session_id
            if is_ours and self._term is not None:
                self._term.session.channels.resume()
                return
            self._give_up("another broker is controller")
            if stat is not None and not is_ours:
                if await self._is_damaged(stat):
                    continue
                return
            context = await self._raise_epoch(is_ours=is_ours)
            if context is not None:
                await self._begin_term(context)
                return

    async def _is_damaged(self, stat: NodeStat) -> bool:
        """Whether the node is damaged; then it is removed, and a new election starts."""
        try:
            registration = ControllerRegistration.decode((await self._store.get(paths.CONTROLLER)).payload)
            self._elected(registration.broker_id)
            return False
        except NoNode:
            return True
        except DamagedPayload as damage:
            logger.error("a new election: %s", damage)
        with contextlib.suppress(NoNode, BadVersion):
            await self._store.delete(paths.CONTROLLER, stat.version)
        return True

    async def _raise_epoch(self, *, is_ours: bool) -> ControllerContext | None:
        """Create /controller and raise the epoch in one step; None if another broker was elected."""
        operations: list[Operation] = []
        if not is_ours:
            registration = ControllerRegistration(self._broker_id, self._clock.now_ms())
            operations.append(Create(paths.CONTROLLER, registration.encode(), ephemeral=True))
        try:
            node = await self._store.get(paths.CONTROLLER_EPOCH)
        except NoNode:
            # The first controller of this cluster.
            epoch, version = 1, 0
            operations.append(Create(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch)))
        else:
            epoch, version = decode_controller_epoch(node.payload) + 1, node.stat.version + 1
            payload = encode_controller_epoch(epoch)
            operations.append(SetData(paths.CONTROLLER_EPOCH, payload, node.stat.version))
        try:
            await self._store.multi(operations)
        except (NodeExists, BadVersion):
            return None
        return ControllerContext(epoch=epoch, epoch_version=version)

    def _elected(self, broker_id: int) -> None:
        if broker_id != self.controller_id:
            self.controller_id = broker_id
            self._on_elected()

    async def _begin_term(self, context: ControllerContext) -> None:
        self._elected(self._broker_id)
        settings = self._settings
        fenced = FencedStore(self._store, context.epoch_version)
        batch = RequestBatch(self._broker_id, settings.inter_broker_listener)
        transitions = Transitions(
            context,
            fenced,
            batch,
            self._allows_unclean,
            self._load_settings,
            self._elections,
            self._on_damaged_state,
        )
        channels = Channels(self._connect, self._on_response)
        session = ControllerSession(
            context, fenced, batch, channels, transitions, self._events.put_nowait, self._clock
        )
        self._term = ActiveController(session, settings.term, self._new_topic_id)
        self._check_contact()
        await self._term.begin()
        interval_s = self._settings.leader_imbalance_check_interval_s
        self._schedule_rebalance(min(FIRST_REBALANCE_S, interval_s))

    def _give_up(self, reason: str) -> None:
        """Stop acting at once: no write and no request of this term can follow."""
        for timer in (self._rebalance_timer, self._contact_timer):
            if timer is not None:
                timer.cancel()
        if self._term is None:
            return
        logger.info("controller of epoch %d resigns: %s", self._term.context.epoch, reason)
        self._term.session.fenced.revoke()
        self._term.session.batch.clear()
        self._term.session.channels.abandon()
        self._term = None

    def _schedule_rebalance(self, delay_s: float) -> None:
        if self._settings.is_auto_leader_rebalance_enabled:
            self._rebalance_timer = asyncio.get_running_loop().call_later(delay_s, self._rebalance_due)

    def _rebalance_due(self) -> None:
        self._events.put_nowait(events.RebalanceDue())
        self._schedule_rebalance(self._settings.leader_imbalance_check_interval_s)

    def _check_contact(self) -> None:
        """Resign before the session can have expired: its time-out counts from the last contact.

        The store may notice later than that, so the time is checked while nothing seems wrong, too.
        """
        if self._contact_timer is not None:
            self._contact_timer.cancel()
        if self._term is None:
            return
        loop = asyncio.get_running_loop()
        resigns_at_s = self._store.last_contact_s + self._session_timeout_ms * 2 / 3 / 1000
        if loop.time() < resigns_at_s:
            self._contact_timer = loop.call_at(resigns_at_s, self._check_contact)
            return
        self._give_up("no contact with the store for too long")
        self._events.put_nowait(events.ElectController())  # for when the store responds again

    # Callbacks

    def _on_controller(self, _: WatchEvent) -> None:
        self._events.put_nowait(events.ElectController())

    def _on_damaged_state(self, _: WatchEvent) -> None:
        self._events.put_nowait(events.DamagedStatesChanged())

    def _on_response(self, broker_id: int, request: ControlRequest, response: events.ControlResponse) -> None:
        self._events.put_nowait(events.ResponseReceived(broker_id, request, response))

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.SUSPENDED:
            self._is_connected.clear()
            if self._term is not None:
                self._term.session.channels.pause()
            self._check_contact()
        elif state is SessionState.CONNECTED:
            self._events.put_nowait(events.ElectController())
            self._is_connected.set()
        else:
            self._give_up("the session has expired")
            self._is_connected.set()


def _resolve(answer: asyncio.Future[Result]) -> Callable[[Result], None]:
    """Sets the result once; later ones, and those of a cancelled caller, are dropped."""

    def reply(response: Result) -> None:
        if not answer.done():
            answer.set_result(response)

    return reply


def _refuse(event: events.Event) -> None:
    """Answer a request that was not answered: this broker is not the controller."""
    match event:
        case events.AlterPartitionRequested():
            event.reply(AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER))
        case events.ControlledShutdownRequested():
            event.reply(ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER))
        case events.ElectionRequested() | events.ReassignmentRequested() | events.ReassignmentsListed():
            event.reply(ErrorCode.NOT_CONTROLLER)
