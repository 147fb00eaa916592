# cython: annotation_typing=False
"""One connection to a broker: requests and their responses, in order, each with a deadline.

Runs on one loop, except for `send_if_idle` and what a thread does during direct reading (direct_read.py).
Compiled by Cython (connection.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import cython

from odradek import __version__
from odradek.client.errors import (
    ClientError,
    ConnectionLost,
    NotAKafkaBroker,
    RequestTimedOut,
)
from odradek.client.network import api_versions
from odradek.client.network.api_versions import BrokerVersions
from odradek.client.network.direct_read import DirectRead, DirectReadOwner
from odradek.client.network.in_flight import InFlight, InFlightRequest, PendingResponse, ResponseHandler
from odradek.client.network.responses import BadResponse, ResponseAssembler
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import ApiVersionsRequest
from odradek.protocol.produce_template import ProduceTemplate
from odradek.protocol.structs import Message

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
    from cython.cimports.odradek.net.socket_calls import send as send_bytes
else:
    from odradek.common.c_clocks import monotonic_seconds
    from odradek.net.socket_calls import send as send_bytes

SOFTWARE_NAME = "odradek"
_CORRELATION_ID_POSITION = 8

Response = TypeVar("Response", bound=Message)


class BrokerConnection(DirectReadOwner):
    """A connection with negotiated API versions. Belongs to one loop; made by `connect`.

    When it is closed, for whatever reason, every pending request fails with the same error.
    """

    def __init__(
        self,
        address: str,
        client_id: str,
        request_timeout_ms: int,
        *,
        allows_direct_read: bool = True,
    ) -> None:
        self.address = address
        self.client_id = client_id
        self.versions = BrokerVersions(address)
        self.last_used_ms = 0.0
        self._request_timeout_ms = request_timeout_ms
        self._allows_direct_read = allows_direct_read
        self._assembler = ResponseAssembler()
        self._in_flight = InFlight()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._ended: ClientError | None = None
        self._closed = self._loop.create_future()
        self._after_responses: dict[Callable[[], object], None] = {}
        # Held while a request is written and added to `_in_flight`: both must have the same order.
        self._sending = threading.Lock()
        self._descriptor: int | None = None
        self.direct_read: DirectRead | None = None
        """Set when direct reading is started for the first time."""

    @property
    def is_open(self) -> bool:
        """Whether requests may be sent."""
        return self._transport is not None and self._ended is None

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return len(self._in_flight)

    @property
    def unsent_bytes(self) -> int:
        """Bytes that are not yet in the send buffer of the kernel."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(
        self, request: Message, version: int, *, timeout_ms: int | None = None
    ) -> asyncio.Future[memoryview]:
        """Send a request; the future gets the frame of its response (see `decode_response`).

        Several may be in flight. If the future is cancelled, its response is dropped.
        """
        response: asyncio.Future[memoryview] = self._loop.create_future()
        self.send_for(response, request, version, timeout_ms=timeout_ms)
        return response

    def send_for(
        self, handler: PendingResponse, request: Message, version: int, *, timeout_ms: int | None = None
    ) -> None:
        """Send a request whose response goes to `handler`."""
        api_key = _api_key(request)
        timeout_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        if self.direct_read is not None:
            self.direct_read.stop()
        with self._sending:
            correlation_id = self._write(api_key, version, request)
            deadline_ms = self.last_used_ms + timeout_ms
            self._in_flight.add(InFlightRequest(correlation_id, api_key, timeout_ms, deadline_ms, handler))
        self._watch(deadline_ms)

    def send_encoded(
        self, handler: PendingResponse, api_key: ApiKey, request: bytearray, *, timeout_ms: int
    ) -> None:
        """Like `send_for`, with an encoded request, size first, without its correlation id."""
        with self._sending:
            if self._ended is not None:
                raise self._ended
            assert self._transport is not None
            correlation_id = self._number(request)
            self._transport.write(request)
            self.last_used_ms = monotonic_seconds() * 1000
            deadline_ms = self.last_used_ms + timeout_ms
            self._in_flight.add(InFlightRequest(correlation_id, api_key, timeout_ms, deadline_ms, handler))
        self._watch(deadline_ms)

    def _number(self, request: bytearray) -> int:
        """Write the next correlation id into an encoded request."""
        correlation_id = self._in_flight.next_id()
        request[_CORRELATION_ID_POSITION : _CORRELATION_ID_POSITION + 4] = correlation_id.to_bytes(4, "big")
        return correlation_id

    def _watch(self, deadline_ms: float) -> None:
        if self._ended is not None:
            return
        if self._deadline_timer is None or self._deadline_timer.when() * 1000 > deadline_ms:
            self._set_timer(deadline_ms)

    def send_if_idle(
        self, handler: PendingResponse, template: ProduceTemplate, batch: bytearray | memoryview
    ) -> bool:
        """From any thread: send one batch if no request is in flight; False if it was not sent.

        During direct reading one request may be in flight.
        An idle socket accepts a small request whole. If it does not, the connection is closed.
        """
        with self._sending:
            if not self._is_idle(1 if self.is_read_directly else 0):
                return False
            correlation_id = self._in_flight.next_id()
            request = template.request(correlation_id, batch)
            self._add_and_write(correlation_id, ApiKey.PRODUCE, self._request_timeout_ms, handler, request)
        return True

    def _add_and_write(
        self,
        correlation_id: int,
        api_key: ApiKey,
        timeout_ms: int,
        handler: PendingResponse,
        request: bytes | bytearray,
    ) -> None:
        """From any thread, with `_sending` held. The connection is closed if the request is sent in part."""
        self.last_used_ms = monotonic_seconds() * 1000
        deadline_ms = self.last_used_ms + timeout_ms
        # Added first: the response may come before `send_bytes` returns.
        self._in_flight.add(InFlightRequest(correlation_id, api_key, timeout_ms, deadline_ms, handler))
        try:
            sent: int = send_bytes(self._own_descriptor(), request)
        except OSError:
            sent = -1
        if sent != len(request):
            lost = ConnectionLost(self.address, "it did not accept a request")
            self._loop.call_soon_threadsafe(self._end, lost)

    def _is_idle(self, most_in_flight: int) -> bool:
        """Whether no more requests are in flight, and the deadline timer runs."""
        is_busy = len(self._in_flight) > most_in_flight or self._deadline_timer is None
        return self.is_open and not is_busy and not self.unsent_bytes

    def _own_descriptor(self) -> int:
        """A duplicate of the socket that stays open until `_end`, even if the transport closes its own."""
        if self._descriptor is None:
            assert self._transport is not None
            self._descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
        return self._descriptor

    # Direct reading.

    @property
    def is_read_directly(self) -> bool:
        """Whether waiting threads read the responses, not the loop."""
        return self.direct_read is not None and self.direct_read.is_active

    def start_direct_read(self, max_idle_s: float) -> DirectRead | None:
        """Let waiting threads read until none has read for so long; None if that is not possible."""
        if not self._allows_direct_read or not self.is_open or self.unsent_bytes:
            return None
        assert self._transport is not None
        if self.direct_read is None:
            descriptor = self._own_descriptor()
            self.direct_read = DirectRead(self, self._loop, self._transport, self._assembler, descriptor)
        self.direct_read.start(max_idle_s)
        return self.direct_read

    def dispatch(self, frame: memoryview) -> None:
        """Complete a request on this thread if its handler can, or else on the loop."""
        handler = self._in_flight.match(frame).handler
        if isinstance(handler, ResponseHandler):
            try:
                if handler.handle(frame):
                    return
            except BaseException as error:
                # KeyboardInterrupt, for example: the waiting caller must not wait forever.
                self._loop.call_soon_threadsafe(handler.set_exception, error)
                raise
        self._loop.call_soon_threadsafe(self._complete_on_loop, handler, frame)

    def _complete_on_loop(self, handler: PendingResponse, frame: memoryview) -> None:
        """On the loop: a response that a waiting thread has read and could not handle."""
        if self.direct_read is not None:
            self.direct_read.stop()
        if not handler.done():
            handler.set_result(frame)
        self._run_after_responses()

    def fail(self, reason: str, is_no_kafka: bool = False) -> None:
        """Close the connection because direct reading has failed."""
        self._end((NotAKafkaBroker if is_no_kafka else ConnectionLost)(self.address, reason))

    def send_directly(
        self, handler: PendingResponse, api_key: ApiKey, request: bytearray, timeout_ms: int
    ) -> None:
        """Like `send_encoded`, from the thread that reads directly."""
        with self._sending:
            if self._ended is not None:
                raise self._ended
            self._add_and_write(self._number(request), api_key, timeout_ms, handler, request)
        if self._deadline_timer is None:
            self._loop.call_soon_threadsafe(self._watch, self.last_used_ms + timeout_ms)

    def call_on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        """From the thread that reads directly: call a function on the loop."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def after_responses(self, function: Callable[[], object]) -> None:
        """Call this once, after all responses that were received together are dispatched."""
        self._after_responses[function] = None

    def send_without_response(self, request: Message, version: int) -> None:
        """Send a request without a response: a produce with acks 0."""
        with self._sending:
            self._write(_api_key(request), version, request)

    async def send_request(
        self,
        request: Message,
        response_class: type[Response],
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Response:
        """Send a request in the best version that both sides support, and wait for its response."""
        api_key = _api_key(request)
        version = self.versions.best(api_key, max_version)
        frame = await self.send(request, version, timeout_ms=timeout_ms)
        response = decode_response(api_key, version, frame)[1]
        assert isinstance(response, response_class)
        return response

    async def close(self) -> None:
        """Close the connection; pending requests fail."""
        self._end(ConnectionLost(self.address, "it was closed"))
        if self._transport is not None:
            # Several tasks may wait; cancelling one must not cancel the others.
            await asyncio.shield(self._closed)

    async def negotiate(self) -> None:
        """Request the API versions of the broker; the first request on every connection (KIP-511)."""
        version = api_versions.NEWEST
        while True:
            request = ApiVersionsRequest()
            if version >= 3:
                request.client_software_name = SOFTWARE_NAME
                request.client_software_version = __version__
            frame = await self.send(request, version)
            versions = api_versions.read_response(self.address, version, frame)
            if isinstance(versions, BrokerVersions):
                self.versions = versions
                return
            version = versions

    def _write(self, api_key: ApiKey, version: int, request: Message) -> int:
        if self._ended is not None:
            raise self._ended
        assert self._transport is not None
        correlation_id = self._in_flight.next_id()
        self._transport.writelines(encode_request(api_key, version, correlation_id, self.client_id, request))
        self.last_used_ms = self._loop.time() * 1000
        return correlation_id

    def _set_timer(self, deadline_ms: float) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self._deadline_timer = self._loop.call_at(deadline_ms / 1000, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._deadline_timer = None
        # Timers may fire slightly early: a deadline within the next millisecond has passed.
        overdue = self._in_flight.overdue(self._loop.time() * 1000 + 1)
        if overdue is not None:
            # Responses come in order: all later requests are delayed too.
            self._end(RequestTimedOut(self.address, overdue.api_key.name, overdue.timeout_ms))
            return
        following = self._in_flight.next_deadline_ms()
        if following is not None:
            self._set_timer(following)

    def _end(self, reason: ClientError) -> None:
        if self._ended is not None:
            return
        with self._sending:
            self._ended = reason
            if self._descriptor is not None:
                os.close(self._descriptor)
        if self.direct_read is not None:
            self.direct_read.close()
            self.direct_read = None
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        for waiting in self._in_flight.abandon():
            if not waiting.handler.done():
                waiting.handler.set_exception(reason)
                waiting.handler.exception()  # or asyncio logs a future that is not awaited
        self._run_after_responses()

    def _run_after_responses(self) -> None:
        while self._after_responses:
            self._after_responses.popitem()[0]()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> Any:
        """The buffer for the next bytes."""
        return self._assembler.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes were received: dispatch the complete responses."""
        try:
            for frame in self._assembler.filled(nbytes):
                waiting = self._in_flight.match(frame)
                if not waiting.handler.done():
                    waiting.handler.set_result(frame)
        except BadResponse as problem:
            self._end(NotAKafkaBroker(self.address, str(problem)))
        self._run_after_responses()

    def eof_received(self) -> None:
        """The broker has closed its side."""
        when = "in the middle of a response" if self._assembler.is_mid_response else "by the broker"
        self._end(ConnectionLost(self.address, f"it was closed {when}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        self._end(ConnectionLost(self.address, str(exc) if exc else "it was closed by the broker"))
        if not self._closed.done():
            self._closed.set_result(None)


def _api_key(request: Message) -> ApiKey:
    return _api_key_of(type(request))  # type: ignore[arg-type]


@cache
def _api_key_of(request_class: type[Message]) -> ApiKey:
    key = request_class.SPEC.key
    assert key is not None
    return ApiKey(key)
