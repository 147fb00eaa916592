"""Requests from the controller to each broker: in order, one at a time, retried until delivered.

UpdateMetadata overtakes LeaderAndIsr and StopReplica, which wait for disks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Protocol

from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.membership.brokers import Broker
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError
from odradek.protocol.messages import UpdateMetadataRequest

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1

# The broker does not know its own new epoch yet, or cannot read a topic's settings from the store at present.
NOT_YET = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT})


class DeliveryFailed(OdradekError):
    """A request or its response was lost; the request is sent again."""


class BrokerChannel(Protocol):
    """The connection to one broker."""

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Send one request and wait for its response; DeliveryFailed if either is lost."""

    async def close(self) -> None:
        """Close the connection; nothing is sent afterwards."""


Connect = Callable[[Broker], BrokerChannel]
OnResponse = Callable[[int, ControlRequest, ControlResponse], None]


class LocalChannel:
    """Calls the broker of this process. One instance serves every controller epoch of this process.

    A request that was started is completed even if the controller that sent it has resigned: otherwise the
    broker would be left in a state that was never sent.
    """

    def __init__(self, handle: Callable[[ControlRequest], Awaitable[ControlResponse]]) -> None:
        """`handle` completes requests of one lane in the order of the calls."""
        self._handle = handle

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Let the broker handle the request."""
        return await asyncio.shield(asyncio.ensure_future(self._handle(request)))

    async def close(self) -> None:
        """Nothing to close."""


class Lane(Enum):
    """Two sequences of requests to one broker, so that metadata does not wait for disks."""

    REPLICAS = "replicas"
    METADATA = "metadata"


def lane_of(request: ControlRequest) -> Lane:
    """UpdateMetadata has a lane of its own: LeaderAndIsr and StopReplica are answered after disk writes."""
    return Lane.METADATA if isinstance(request, UpdateMetadataRequest) else Lane.REPLICAS


class Channels:
    """A queue, a task and a connection for each lane of each live broker. Owned by the controller's loop."""

    def __init__(
        self, connect: Connect, on_response: OnResponse, retry_backoff_s: float = RETRY_BACKOFF_S
    ) -> None:
        self._connect = connect
        self._on_response = on_response
        self._retry_backoff_s = retry_backoff_s
        self._queues: dict[tuple[int, Lane], asyncio.Queue[ControlRequest]] = {}
        self._senders: dict[tuple[int, Lane], asyncio.Task[None]] = {}
        self._is_open = asyncio.Event()
        self._is_open.set()

    def add(self, broker: Broker) -> None:
        """Connect to a broker; an earlier channel with that id must have been removed."""
        for lane in Lane:
            queue: asyncio.Queue[ControlRequest] = asyncio.Queue()
            self._queues[broker.broker_id, lane] = queue
            self._senders[broker.broker_id, lane] = asyncio.create_task(self._deliver(broker, queue))

    def remove(self, broker_id: int) -> None:
        """Close the channel; requests that were not delivered are dropped."""
        for lane in Lane:
            self._queues.pop((broker_id, lane), None)
            sender = self._senders.pop((broker_id, lane), None)
            if sender is not None:
                sender.cancel()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; dropped if the broker is offline, as it gets the full state when it starts."""
        queue = self._queues.get((broker_id, lane_of(request)))
        if queue is not None:
            queue.put_nowait(request)

    async def ask_once(
        self, broker: Broker, request: ControlRequest, timeout_s: float
    ) -> ControlResponse | None:
        """Send a request outside the queues, on a connection of its own; None without a response in time."""
        channel = self._connect(broker)
        try:
            return await asyncio.wait_for(channel.send(request), timeout_s)
        except (DeliveryFailed, TimeoutError):
            return None
        finally:
            await channel.close()

    def pause(self) -> None:
        """Send nothing until `resume`: the session may have expired."""
        self._is_open.clear()

    def resume(self) -> None:
        """Continue with the queued requests."""
        self._is_open.set()

    def abandon(self) -> None:
        """Close every channel without waiting: the controller has resigned."""
        for broker_id in {known for known, _ in self._senders}:
            self.remove(broker_id)

    async def close(self) -> None:
        """Close every channel and wait for the senders to stop."""
        senders = list(self._senders.values())
        self.abandon()
        await asyncio.gather(*senders, return_exceptions=True)

    async def _deliver(self, broker: Broker, queue: asyncio.Queue[ControlRequest]) -> None:
        channel = self._connect(broker)
        try:
            while True:
                request = await queue.get()
                response = await self._send(channel, broker.broker_id, request)
                if response is not None:
                    self._on_response(broker.broker_id, request, response)
        finally:
            await channel.close()

    async def _send(
        self, channel: BrokerChannel, broker_id: int, request: ControlRequest
    ) -> ControlResponse | None:
        """The response; the request is sent again until there is one, or the broker's registration ends."""
        name = type(request).__name__
        level = logging.WARNING
        while True:
            await self._is_open.wait()
            try:
                response = await channel.send(request)
                if response.error_code not in NOT_YET:
                    return response
                reason = f"the broker answered {ErrorCode(response.error_code).name}"
            except DeliveryFailed as error:
                reason = str(error)
            except Exception:  # a task root: one bad request must not stop the others
                logger.exception("%s to broker %d is dropped", name, broker_id)
                return None
            logger.log(level, "%s to broker %d failed, and is sent again: %s", name, broker_id, reason)
            level = logging.DEBUG
            await asyncio.sleep(self._retry_backoff_s)
