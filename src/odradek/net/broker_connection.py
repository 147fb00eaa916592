"""A connection of a broker to another one: requests in order, each with a deadline; it reconnects."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

from odradek.common.errors import OdradekError
from odradek.net.broker_versions import VERSIONS
from odradek.net.frames import BufferPool, FrameAssembler, FrameTooLarge
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message

DEFAULT_TIMEOUT_S = 30.0
RECEIVE_BUFFER_BYTES = 64 * 1024
MAX_RESPONSE_BYTES = 2**30  # the first four letters of other protocols are larger numbers
MAX_CORRELATION_ID = 2**31 - 1


class RequestFailed(OdradekError):
    """There is no response: the request was not sent, was lost, or was handled and its response was lost."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        super().__init__(f"{address}: {reason}")


class Address(NamedTuple):
    """Where a broker listens for other brokers."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ReconnectBackoff(NamedTuple):
    """How long to wait before another attempt to connect: doubled after each failure."""

    first_s: float = 0.05
    max_s: float = 1.0

    def pause_s(self, failures: int) -> float:
        """The pause after so many failures in a row."""
        return min(self.first_s * 2 ** min(failures - 1, 30), self.max_s) if failures else 0.0


DEFAULT_BACKOFF = ReconnectBackoff()


class BrokerConnection:
    """Requests of one kind to one broker. Owned by its user, on one loop; several tasks may send.

    Requests are written in the order of the calls and answered in that order, so that a request which waits
    at the broker (a fetch) delays all later ones: such requests need a connection of their own. After a
    timeout the connection is closed and every request in flight fails; the next request connects again.
    """

    def __init__(
        self, address: Address, client_id: str, *, backoff: ReconnectBackoff = DEFAULT_BACKOFF
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._backoff = backoff
        self._lock = asyncio.Lock()
        self._wire: _Wire | None = None
        self._failures = 0
        self._not_before = 0.0
        self._is_closed = False

    async def send(
        self, request: Message, *, timeout_s: float = DEFAULT_TIMEOUT_S, version: int | None = None
    ) -> Message:
        """Send a request and return its response, decoded; RequestFailed if there is none in time.

        Records in a response are views of its frame, which stays as it is while they are used.
        """
        api_key, version = _api_and_version(type(request), version)
        frame = await self.send_raw(request, timeout_s=timeout_s, version=version)
        try:
            return decode_response(api_key, version, frame)[1]
        except ProtocolError as error:
            reason = f"the response to {api_key.name} v{version} cannot be read: {error}"
            self.disconnect(reason)
            raise RequestFailed(str(self.address), reason) from error

    async def send_raw(
        self, request: Message, *, timeout_s: float = DEFAULT_TIMEOUT_S, version: int | None = None
    ) -> memoryview:
        """Like `send`, but returns the frame of the response, without its size."""
        api_key, version = _api_and_version(type(request), version)
        wire: _Wire | None = None
        try:
            async with asyncio.timeout(timeout_s):
                async with self._lock:
                    wire = await self._connected()
                    response = wire.write(api_key, version, self._client_id, request)
                return await response
        except TimeoutError:
            reason = f"no response to {api_key.name} within {timeout_s:g} s"
            if wire is not None:
                wire.end(reason)
            raise RequestFailed(str(self.address), reason) from None

    def disconnect(self, reason: str) -> None:
        """Close the current connection; requests in flight fail, and the next request opens another one."""
        if self._wire is not None:
            self._wire.end(reason)

    def close(self) -> None:
        """Close the connection for good: requests in flight and later ones fail."""
        self._is_closed = True
        self.disconnect("the connection was closed here")

    async def _connected(self) -> _Wire:
        """The open connection, made if there is none; only with `_lock` held."""
        wire = self._wire
        if wire is not None and wire.ended is None:
            return wire
        loop = asyncio.get_running_loop()
        if self._not_before > loop.time():
            await asyncio.sleep(self._not_before - loop.time())
        if self._is_closed:
            raise RequestFailed(str(self.address), "the connection was closed here")
        # Raised again after the first response only: a broker that accepts and closes is not ready yet.
        self._failures += 1
        self._not_before = loop.time() + self._backoff.pause_s(self._failures)
        try:
            _, received = await loop.create_connection(
                lambda: _Wire(str(self.address), self._responded), self.address.host, self.address.port
            )
        except OSError as error:
            reason = f"cannot connect: {error.strerror or error}"
            raise RequestFailed(str(self.address), reason) from None
        self._wire = wire = received
        if self._is_closed:
            self.close()
            raise RequestFailed(str(self.address), "the connection was closed here")
        return wire

    def _responded(self) -> None:
        self._failures = 0
        self._not_before = 0.0


class BrokerConnections:
    """The connections of this broker to the others, by broker id and purpose. Lives on the broker's loop.

    `address_of` returns where a broker listens at present, or None if it is not known. A connection to an
    earlier address is closed when the broker is next asked for.
    """

    def __init__(self, address_of: Callable[[int], Address | None], client_id: str) -> None:
        self._address_of = address_of
        self._client_id = client_id
        self._connections: dict[tuple[int, str], BrokerConnection] = {}

    async def send(
        self,
        broker_id: int,
        request: Message,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        version: int | None = None,
        purpose: str = "",
    ) -> Message:
        """Send a request to a broker and return its response; RequestFailed if there is none in time."""
        connection = self.to(broker_id, purpose)
        if connection is None:
            raise RequestFailed(f"broker {broker_id}", "its address is not known")
        return await connection.send(request, timeout_s=timeout_s, version=version)

    def to(self, broker_id: int, purpose: str = "") -> BrokerConnection | None:
        """The connection to a broker for this purpose, shared by all callers; None without an address."""
        address = self._address_of(broker_id)
        known = self._connections.get((broker_id, purpose))
        if known is not None and known.address == address:
            return known
        if known is not None:
            known.close()
            del self._connections[broker_id, purpose]
        if address is None:
            return None
        client_id = f"{self._client_id}-{purpose}" if purpose else self._client_id
        connection = self._connections[broker_id, purpose] = BrokerConnection(address, client_id)
        return connection

    def forget(self, broker_id: int, purpose: str | None = None) -> None:
        """Close the connections to a broker, for one purpose or all: requests in flight fail."""
        for key in [known for known in self._connections if known[0] == broker_id]:
            if purpose in (None, key[1]):
                self._connections.pop(key).close()

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class _Wire(asyncio.BufferedProtocol):
    """One TCP connection: it ends once, and then every request in flight fails."""

    def __init__(self, address: str, on_response: Callable[[], None]) -> None:
        self.ended: RequestFailed | None = None
        self._address = address
        self._on_response = on_response
        self._transport: asyncio.Transport | None = None
        # A pool that keeps nothing: the frame of a large response belongs to the sender of the request.
        self._assembler = FrameAssembler(MAX_RESPONSE_BYTES, BufferPool(max_bytes=0))
        self._shared = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._is_in_own_space = False
        self._in_flight: deque[tuple[int, asyncio.Future[memoryview]]] = deque()
        self._last_id = 0

    def write(
        self, api_key: ApiKey, version: int, client_id: str, request: Message
    ) -> asyncio.Future[memoryview]:
        """Write a request; the future gets the frame of its response."""
        if self.ended is not None:
            raise self.ended
        assert self._transport is not None
        self._last_id = self._last_id + 1 if self._last_id < MAX_CORRELATION_ID else 1
        parts = encode_request(api_key, version, self._last_id, client_id, request)
        response: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._in_flight.append((self._last_id, response))
        self._transport.writelines(parts)
        return response

    def end(self, reason: str) -> None:
        """Close the connection; requests in flight fail."""
        if self.ended is not None:
            return
        self.ended = RequestFailed(self._address, reason)
        if self._transport is not None:
            self._transport.abort()
        for _, response in self._in_flight:
            if not response.done():
                response.set_exception(RequestFailed(self._address, reason))
                response.exception()  # or asyncio logs a future that is not awaited any more
        self._in_flight.clear()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> Any:
        # No reference is kept: the buffer can only grow once the loop has released its view.
        free_space = self._assembler.free_space()
        self._is_in_own_space = free_space is not None
        return self._shared if free_space is None else free_space

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._is_in_own_space:
                frame = self._assembler.filled(nbytes)
                frames = [] if frame is None else [frame]
            else:
                # Frames that came whole are views of the shared buffer, and copied.
                frames = [memoryview(bytes(one)) for one in self._assembler.feed(self._shared[:nbytes])]
        except FrameTooLarge as error:
            self.end(f"it sent an invalid response: {error}")
            return
        for frame in frames:
            self._answered(frame)
        self._assembler.done()

    def eof_received(self) -> None:
        self.end("the connection was closed by the broker")

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(f"the connection was lost: {exc}" if exc else "the connection was closed by the broker")

    def _answered(self, frame: memoryview) -> None:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._in_flight or self._in_flight[0][0] != correlation_id:
            self.end(f"it sent a response with the unexpected correlation id {correlation_id}")
            return
        _, response = self._in_flight.popleft()
        self._on_response()
        if not response.done():
            response.set_result(frame)


def _api_and_version(request_class: type[Message], version: int | None) -> tuple[ApiKey, int]:
    api_key = _api_key(request_class)  # type: ignore[arg-type]
    return api_key, VERSIONS[api_key] if version is None else version


@cache
def _api_key(request_class: type[Message]) -> ApiKey:
    key = request_class.SPEC.key
    assert key is not None
    return ApiKey(key)
