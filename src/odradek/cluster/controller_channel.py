"""Requests of a broker to the controller, wherever it is at present."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from odradek.common.error_codes import ErrorCode
from odradek.net.broker_connection import DEFAULT_TIMEOUT_S, BrokerConnections, RequestFailed
from odradek.protocol.structs import Message

PURPOSE = "controller"
RETRY_BACKOFF_S = 0.05


class ControllerChannel:
    """Lives on the broker's loop. A request may be handled twice, if its first response was lost.

    `controller_id` returns the broker that is controller as far as this one knows, or None. `handle` handles
    a request where this broker is the controller.
    """

    def __init__(
        self,
        broker_id: int,
        controller_id: Callable[[], int | None],
        connections: BrokerConnections,
        handle: Callable[[Message], Awaitable[Message]],
    ) -> None:
        self._broker_id = broker_id
        self._controller_id = controller_id
        self._connections = connections
        self._handle = handle
        self._current: int | None = None

    def controller_changed(self) -> None:
        """Another broker may be controller now: requests that wait for the former one are sent to it."""
        former, self._current = self._current, self._controller_id()
        if former is not None and former != self._current:
            self._connections.forget(former, PURPOSE)

    async def send(
        self, request: Message, *, timeout_s: float = DEFAULT_TIMEOUT_S, version: int | None = None
    ) -> Message:
        """Send a request and return the controller's response; RequestFailed if there is none in time.

        NOT_CONTROLLER and lost connections are retried; every other error is in the response.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            try:
                response = await self._send_once(request, deadline - loop.time(), version)
            except RequestFailed as error:
                failure = error
            else:
                if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.NOT_CONTROLLER:
                    return response
                failure = RequestFailed("the controller", "it has just resigned")
            if loop.time() + RETRY_BACKOFF_S >= deadline:
                raise failure
            await asyncio.sleep(RETRY_BACKOFF_S)

    async def _send_once(self, request: Message, timeout_s: float, version: int | None) -> Message:
        self._current = self._controller_id()
        if self._current is None:
            raise RequestFailed("the controller", "none is elected")
        if self._current != self._broker_id:
            return await self._connections.send(
                self._current, request, timeout_s=timeout_s, version=version, purpose=PURPOSE
            )
        try:
            async with asyncio.timeout(timeout_s):
                return await self._handle(request)
        except TimeoutError:
            raise RequestFailed("the controller", f"no response within {timeout_s:g} s") from None
