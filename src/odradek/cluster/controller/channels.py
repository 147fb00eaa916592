"""Requests from the controller to each broker: in order, one at a time, retried until delivered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from odradek.cluster.brokers import Broker
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.common.errors import OdradekError

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1


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
        self._handle = handle
        self._turn = asyncio.Lock()

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Let the broker handle the request; one at a time."""
        return await asyncio.shield(asyncio.ensure_future(self._in_turn(request)))

    async def close(self) -> None:
        """Nothing to close."""

    async def _in_turn(self, request: ControlRequest) -> ControlResponse:
        async with self._turn:
            return await self._handle(request)


class Channels:
    """One queue and one task per live broker. Owned by the controller's event loop."""

    def __init__(
        self, connect: Connect, on_response: OnResponse, retry_backoff_s: float = RETRY_BACKOFF_S
    ) -> None:
        self._connect = connect
        self._on_response = on_response
        self._retry_backoff_s = retry_backoff_s
        self._queues: dict[int, asyncio.Queue[ControlRequest]] = {}
        self._senders: dict[int, asyncio.Task[None]] = {}
        self._is_open = asyncio.Event()
        self._is_open.set()

    def add(self, broker: Broker) -> None:
        """Connect to a broker; an earlier channel with that id must have been removed."""
        queue: asyncio.Queue[ControlRequest] = asyncio.Queue()
        self._queues[broker.broker_id] = queue
        self._senders[broker.broker_id] = asyncio.create_task(self._deliver(broker, queue))

    def remove(self, broker_id: int) -> None:
        """Close the channel; requests that were not delivered are dropped."""
        self._queues.pop(broker_id, None)
        sender = self._senders.pop(broker_id, None)
        if sender is not None:
            sender.cancel()

    def send(self, broker_id: int, request: ControlRequest) -> None:
        """Queue a request; dropped if the broker is offline, as it gets the full state when it starts."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.put_nowait(request)

    def pause(self) -> None:
        """Send nothing until `resume`: the session may have expired."""
        self._is_open.clear()

    def resume(self) -> None:
        """Continue with the queued requests."""
        self._is_open.set()

    def abandon(self) -> None:
        """Close every channel without waiting: the controller has resigned."""
        for broker_id in list(self._senders):
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
        while True:
            await self._is_open.wait()
            try:
                return await channel.send(request)
            except DeliveryFailed as error:
                logger.warning("%s to broker %d failed: %s", type(request).__name__, broker_id, error)
                await asyncio.sleep(self._retry_backoff_s)
            except Exception:  # a task root: one bad request must not stop the others
                logger.exception("%s to broker %d is dropped", type(request).__name__, broker_id)
                return None
