# cython: annotation_typing=False
"""One connection to a broker: requests out, answers in, in order, each with a deadline.

Everything happens on one loop, but for `send_alone` and what a thread does that the connection is lent to
(loan.py). Compiled by Cython (connection.pxd has the C types), or interpreted as is.
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
from odradek.client.network.in_flight import InFlight, ResponseHandler, Waiting
from odradek.client.network.in_flight import PendingResponse as PendingAnswer
from odradek.client.network.responses import BadResponse, ResponseAssembler
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import ApiVersionsRequest
from odradek.protocol.produce_template import ProduceTemplate
from odradek.protocol.structs import Message

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
    from cython.cimports.odradek.net.socket_calls import send as send_octets
else:
    from odradek.common.c_clocks import monotonic_seconds
    from odradek.net.socket_calls import send as send_octets

SOFTWARE_NAME = "odradek"
_CORRELATION_ID_POSITION = 8

PendingResponse = TypeVar("PendingResponse", bound=Message)


class BrokerConnection(DirectReadOwner):
    """A connection whose broker has told what it serves. Lives on one loop; made by `connect`.

    When it ends, for whatever reason, every answer that is still due fails with the same error.
    """

    def __init__(
        self,
        address: str,
        client_id: str,
        request_timeout_ms: int,
    ) -> None:
        self.address = address
        self.client_id = client_id
        self.versions = BrokerVersions(address)
        self.last_used_ms = 0.0
        self._request_timeout_ms = request_timeout_ms
        self._assembler = ResponseAssembler()
        self._in_flight = InFlight()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._ended: ClientError | None = None
        self._closed = self._loop.create_future()
        self._afterwards: dict[Callable[[], object], None] = {}
        # Held while a request is written and noted: the order of both must be the same.
        self._sending = threading.Lock()
        self._descriptor: int | None = None
        self.loan: DirectRead | None = None
        """How others read from it, once it was lent."""

    @property
    def is_open(self) -> bool:
        """Whether requests may be sent."""
        return self._transport is not None and self._ended is None

    @property
    def in_flight(self) -> int:
        """Requests that have not been answered yet."""
        return len(self._in_flight)

    @property
    def unsent_bytes(self) -> int:
        """Bytes given to `send` that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(
        self, request: Message, version: int, *, timeout_ms: int | None = None
    ) -> asyncio.Future[memoryview]:
        """Send a request; the future gets the frame of its answer (see `decode_response`).

        Several may be on their way at once. Cancelling the future loses the answer, not the order.
        """
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        self.send_for(answer, request, version, timeout_ms=timeout_ms)
        return answer

    def send_for(
        self, answer: PendingAnswer, request: Message, version: int, *, timeout_ms: int | None = None
    ) -> None:
        """Send a request whose answer goes to `answer`."""
        api_key = _api_key(request)
        timeout_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        if self.loan is not None:
            self.loan.take_back()
        with self._sending:
            correlation_id = self._write(api_key, version, request)
            deadline_ms = self.last_used_ms + timeout_ms
            self._in_flight.add(Waiting(correlation_id, api_key, timeout_ms, deadline_ms, answer))
        self._watch(deadline_ms)

    def send_made(
        self, answer: PendingAnswer, api_key: ApiKey, request: bytearray, *, timeout_ms: int
    ) -> None:
        """Like `send_for`, with a request that is encoded already, size first, but for its correlation id."""
        with self._sending:
            if self._ended is not None:
                raise self._ended
            assert self._transport is not None
            correlation_id = self._number(request)
            self._transport.write(request)
            self.last_used_ms = monotonic_seconds() * 1000
            deadline_ms = self.last_used_ms + timeout_ms
            self._in_flight.add(Waiting(correlation_id, api_key, timeout_ms, deadline_ms, answer))
        self._watch(deadline_ms)

    def _number(self, request: bytearray) -> int:
        """Write the next correlation id into a request that is encoded, size first."""
        correlation_id = self._in_flight.next_id()
        request[_CORRELATION_ID_POSITION : _CORRELATION_ID_POSITION + 4] = correlation_id.to_bytes(4, "big")
        return correlation_id

    def _watch(self, deadline_ms: float) -> None:
        if self._ended is not None:
            return
        if self._deadline_timer is None or self._deadline_timer.when() * 1000 > deadline_ms:
            self._set_timer(deadline_ms)

    def send_alone(
        self, answer: PendingAnswer, template: ProduceTemplate, batch: bytearray | memoryview
    ) -> bool:
        """From any thread: send one batch if nothing else is on its way; False (and not done) otherwise.

        While the connection is on loan the answer of the one before may not be read yet.
        What is idle takes a small request whole. If it does not, the connection ends: what has become of the
        request is then as unknown as with any other that ends.
        """
        with self._sending:
            if not self._is_idle(1 if self.is_lent else 0):
                return False
            correlation_id = self._in_flight.next_id()
            request = template.request(correlation_id, batch)
            self._note_and_write(correlation_id, ApiKey.PRODUCE, self._request_timeout_ms, answer, request)
        return True

    def _note_and_write(
        self,
        correlation_id: int,
        api_key: ApiKey,
        timeout_ms: int,
        answer: PendingAnswer,
        request: bytes | bytearray,
    ) -> None:
        """From any thread, with `_sending` held. What the socket does not take whole ends the connection."""
        self.last_used_ms = monotonic_seconds() * 1000
        deadline_ms = self.last_used_ms + timeout_ms
        # First: the answer may come before the call that sends is back.
        self._in_flight.add(Waiting(correlation_id, api_key, timeout_ms, deadline_ms, answer))
        try:
            sent: int = send_octets(self._own_descriptor(), request)
        except OSError:
            sent = -1
        if sent != len(request):
            lost = ConnectionLost(self.address, "it did not take a request")
            self._loop.call_soon_threadsafe(self._end, lost)

    def _is_idle(self, most_in_flight: int) -> bool:
        """Whether so little is on its way, and a timer runs that will look after what begins now."""
        is_busy = len(self._in_flight) > most_in_flight or self._deadline_timer is None
        return self.is_open and not is_busy and not self.unsent_bytes

    def _own_descriptor(self) -> int:
        """The socket under a number that stays ours until `_end`, whenever the transport closes its own."""
        if self._descriptor is None:
            assert self._transport is not None
            self._descriptor = os.dup(self._transport.get_extra_info("socket").fileno())
        return self._descriptor

    # On loan.

    @property
    def is_lent(self) -> bool:
        """Whether a thread that waits reads what comes, not the loop."""
        return self.loan is not None and self.loan.is_lent

    def lend(self, longest_lull_s: float) -> DirectRead | None:
        """Leave reading to a thread that waits, until nothing came for so long; None if it cannot be."""
        if not self.is_open or self.unsent_bytes:
            return None
        assert self._transport is not None
        if self.loan is None:
            descriptor = self._own_descriptor()
            self.loan = DirectRead(self, self._loop, self._transport, self._assembler, descriptor)
        self.loan.lend(longest_lull_s)
        return self.loan

    def hand_over(self, frame: memoryview) -> None:
        """Give an answer to somebody who can take it on this thread, or else to the loop."""
        answer = self._in_flight.answered(frame).answer
        if isinstance(answer, ResponseHandler):
            try:
                if answer.take(frame):
                    return
            except BaseException as error:
                # Ctrl-C, perhaps: whoever waits must not wait for ever.
                self._loop.call_soon_threadsafe(answer.set_exception, error)
                raise
        self._loop.call_soon_threadsafe(self._take_over, answer, frame)

    def _take_over(self, answer: PendingAnswer, frame: memoryview) -> None:
        """On the loop: an answer that was read by a thread, and is not as usual."""
        if self.loan is not None:
            self.loan.take_back()
        if not answer.done():
            answer.set_result(frame)
        self._call_afterwards()

    def break_off(self, reason: str, is_no_kafka: bool = False) -> None:
        """End it because of what a thread has read, or could not."""
        self._end((NotAKafkaBroker if is_no_kafka else ConnectionLost)(self.address, reason))

    def send_on_loan(
        self, answer: PendingAnswer, api_key: ApiKey, request: bytearray, timeout_ms: int
    ) -> None:
        """Like `send_made`, from the thread that the connection is lent to."""
        with self._sending:
            if self._ended is not None:
                raise self._ended
            self._note_and_write(self._number(request), api_key, timeout_ms, answer, request)
        if self._deadline_timer is None:
            self._loop.call_soon_threadsafe(self._watch, self.last_used_ms + timeout_ms)

    def call_on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        """From the thread that the connection is lent to: leave something to the loop."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def afterwards(self, function: Callable[[], object]) -> None:
        """While answers are handed out: call this once, when all that came together are."""
        self._afterwards[function] = None

    def send_unanswered(self, request: Message, version: int) -> None:
        """Send a request that gets no answer: a produce with acks 0."""
        with self._sending:
            self._write(_api_key(request), version, request)

    async def ask(
        self,
        request: Message,
        answer_class: type[PendingResponse],
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> PendingResponse:
        """Send a request in the best version that both sides know, and wait for its answer."""
        api_key = _api_key(request)
        version = self.versions.best(api_key, max_version)
        frame = await self.send(request, version, timeout_ms=timeout_ms)
        answer = decode_response(api_key, version, frame)[1]
        assert isinstance(answer, answer_class)
        return answer

    async def close(self) -> None:
        """End the connection; what was not answered fails."""
        self._end(ConnectionLost(self.address, "it was closed"))
        if self._transport is not None:
            # Several may wait for the end; one that is cancelled must not take it from the others.
            await asyncio.shield(self._closed)

    async def negotiate(self) -> None:
        """Ask what the broker serves; the first thing on every connection (KIP-511)."""
        version = api_versions.NEWEST
        while True:
            request = ApiVersionsRequest()
            if version >= 3:
                request.client_software_name = SOFTWARE_NAME
                request.client_software_version = __version__
            frame = await self.send(request, version)
            told = api_versions.read_answer(self.address, version, frame)
            if isinstance(told, BrokerVersions):
                self.versions = told
                return
            version = told

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
        # The loop may wake us a hair early: a deadline within the next millisecond is over.
        overdue = self._in_flight.overdue(self._loop.time() * 1000 + 1)
        if overdue is not None:
            # A broker that does not answer one request in time answers none behind it either.
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
        if self.loan is not None:
            self.loan.end()
            self.loan = None
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        for waiting in self._in_flight.abandon():
            if not waiting.answer.done():
                waiting.answer.set_exception(reason)
                waiting.answer.exception()  # an answer that nobody awaits is no accident worth a log line
        self._call_afterwards()

    def _call_afterwards(self) -> None:
        while self._afterwards:
            self._afterwards.popitem()[0]()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> Any:
        """Where the next bytes belong."""
        return self._assembler.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came: hand out the answers that they complete."""
        try:
            for frame in self._assembler.filled(nbytes):
                waiting = self._in_flight.answered(frame)
                if not waiting.answer.done():
                    waiting.answer.set_result(frame)
        except BadResponse as problem:
            self._end(NotAKafkaBroker(self.address, str(problem)))
        self._call_afterwards()

    def eof_received(self) -> None:
        """The broker will send no more."""
        told = "in the middle of an answer" if self._assembler.is_mid_answer else "by the broker"
        self._end(ConnectionLost(self.address, f"it was closed {told}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
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
