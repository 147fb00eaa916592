# cython: annotation_typing=False
"""Decodes a frame, calls the handler of its API, and turns what that returns or raises into a response.

`served_apis.py` lists what is served; the module of a handler is imported when its API is first used (ADR 4).
Compiled by Cython (dispatch.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import cython

from odradek.broker.requests.context import RequestContext, RequestVersion
from odradek.broker.requests.errors_in_responses import error_response
from odradek.broker.requests.served_apis import CONTROL, SERVED, served_on
from odradek.broker.requests.services import Services
from odradek.broker.requests.store_calls import as_kafka_error
from odradek.broker.security.acls import Operation
from odradek.broker.security.permissions import needed_of_request
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination.errors import StoreError
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.net.request_limit import RequestLimit
from odradek.protocol.api import answer_to_unknown_api_versions, request_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.codec import decode
from odradek.protocol.errors import ProtocolError, UnsupportedVersion
from odradek.protocol.headers import encode_response, peek_request
from odradek.protocol.limits import DEFAULT_LIMITS
from odradek.protocol.schema import Versions
from odradek.protocol.structs import Message

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int16_at, raw_bytes
else:
    from odradek.common.byte_access import int16_at, raw_bytes

log = logging.getLogger(__name__)

HandlerResult = Message | None | Coroutine[Any, Any, Message | None]
Function = TypeVar("Function", bound=Callable[..., Any])


class Entry(NamedTuple):
    """One API as it is served."""

    api_key: ApiKey
    versions: Versions
    function: Callable[[RequestContext, Any], HandlerResult]
    request_class: type[Message]
    cluster_operations: tuple[Operation, ...]


_HANDLERS: dict[ApiKey, Entry] = {}

_SHORTEST = 8  # API key, version and correlation id
_LIMITS = DEFAULT_LIMITS

# Requests that use threads or the store, or that yield: bounded by `queued.max.requests`. All others
# are answered at once, or wait for what other clients do, and must not block those clients' requests.
WORKED_OFF_THE_LOOP = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.UPDATE_FEATURES,
    }
)


def handles(api_key: ApiKey, versions: tuple[int, int]) -> Callable[[Function], Function]:
    """Register the handler of an API for these versions.

    A plain function returns the response before anything else happens; if it returns None it has
    responded, or will respond, through the context. A coroutine function may wait. Records in a request are
    views of a buffer that is used again: only a plain function may touch them, and only before it returns.
    """

    def register(function: Function) -> Function:
        assert api_key not in _HANDLERS, f"{api_key.name} has two handlers"
        assert SERVED.get(api_key) == versions, f"served_apis.py has other versions of {api_key.name}"
        _HANDLERS[api_key] = Entry(
            api_key, Versions(*versions), function, request_class(api_key), needed_of_request(api_key)
        )
        return function

    return register


def load_handler(api_key: ApiKey) -> Entry | None:
    """How an API is served, after its file has been imported; None if it is not served."""
    if api_key not in SERVED:
        return None
    import_module(f"odradek.broker.handlers.{api_key.name.lower()}")
    return _HANDLERS[api_key]


class Route:
    """Everything that the requests of one version of one API need."""

    __slots__ = ("cluster_operations", "counters", "entry", "function", "is_control", "request_version")

    def __init__(self, entry: Entry, version: int, counters: RequestCounters) -> None:
        self.entry = entry
        self.function = entry.function
        self.cluster_operations = entry.cluster_operations
        self.request_version = RequestVersion(entry.api_key, version)
        self.counters = counters
        self.is_control = entry.api_key in CONTROL


class Dispatcher:
    """Handles the frames of every connection of one listener. Lives on the loop."""

    def __init__(self, services: Services, listener: str) -> None:
        self._services = services
        self._listener = listener
        self._served = served_on(is_for_brokers=services.config().is_for_brokers(listener))
        self._loop = services.loop
        self._tasks: set[asyncio.Task[None]] = set()
        # By API key and version. Not shared between dispatchers: another thread's broker may be importing
        # the handler at this moment.
        self._routes: dict[tuple[int, int], Route] = {}
        self.counters = {api_key: RequestCounters() for api_key in SERVED}

    def handle(self, connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        """Serve the request in a frame (without its size)."""
        try:
            if len(frame) < _SHORTEST:
                peek_request(frame)  # raises
            raw = raw_bytes(frame)
            api_key, version = int16_at(raw, 0), int16_at(raw, 2)
            route = self._routes.get((api_key, version))
            if route is None:
                route = self._add_route(connection, frame, exchange)
                if route is None:
                    return
            header, position = decode(route.request_version.header_plan, frame, 0, _LIMITS)
            # Bytes after the message are ignored: `headers.decode_request` says why.
            request, _ = decode(route.request_version.request_plan, frame, position, _LIMITS)
        except ProtocolError as error:
            log.warning("%s sent a bad request: %s", connection.peer, error)
            connection.close("it sent a bad request")
            return
        connection.is_exempt = route.is_control
        counters = route.counters
        counters.requests += 1
        counters.request_bytes += len(frame)
        context = RequestContext(
            self._services,
            self._listener,
            connection,
            exchange,
            route.request_version,
            header.correlation_id,
            header.client_id,
            counters,
        )
        self._run(route, context, request, len(frame))

    def _add_route(self, connection: Connection, frame: memoryview, exchange: Exchange) -> Route | None:
        """The route for the first request of a version; None if it is not served and was refused."""
        start = peek_request(frame)
        entry = load_handler(start.api_key) if start.api_key in self._served else None
        if entry is None or start.version not in entry.versions:
            self._refuse_version(connection, exchange, start.api_key, start.version, start.correlation_id)
            return None
        route = Route(entry, start.version, self.counters[start.api_key])
        self._routes[(int(start.api_key), start.version)] = route
        return route

    def _run(self, route: Route, context: RequestContext, request: Message, size: int) -> None:
        try:
            if route.cluster_operations and self._services.authorizer is not None:
                for operation in route.cluster_operations:
                    context.authorize(operation)
            answer = route.function(context, request)
        except KafkaError as error:
            self._answer_error(context, request, error)
            return
        except Exception:
            self._answer_bug(context, request)
            return
        if answer is None:
            return
        if isinstance(answer, Message):
            context.answer(answer)
            return
        task = self._loop.create_task(self._finish(context, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if route.entry.api_key in WORKED_OFF_THE_LOOP:
            limit = self._services.request_limit
            limit.enter(size)
            task.add_done_callback(partial(_leave, limit, size))

    async def _finish(
        self, context: RequestContext, request: Message, answer: Coroutine[Any, Any, Message | None]
    ) -> None:
        try:
            response = await answer
        except KafkaError as error:
            self._answer_error(context, request, error)
        except StoreError as error:
            self._answer_store_error(context, request, error)
        except Exception:
            self._answer_bug(context, request)
        else:
            if response is not None:
                context.answer(response)

    def _answer_error(self, context: RequestContext, request: Message, error: KafkaError) -> None:
        context.counters.errors += 1
        response = error_response(context.api_key, request, error.error_code, str(error))
        if response is None:
            context.connection.close(f"{context.api_key.name} failed: {error}")
        else:
            context.answer(response)

    def _answer_store_error(self, context: RequestContext, request: Message, error: StoreError) -> None:
        translated = as_kafka_error(error)
        if translated is None:
            self._answer_bug(context, request)
        else:
            self._answer_error(context, request, translated)

    def _answer_bug(self, context: RequestContext, request: Message) -> None:
        log.exception(
            "Unexpected error in %s v%d, requested by %s",
            context.api_key.name,
            context.version,
            context.connection.peer,
        )
        error = KafkaError(
            "unexpected broker error; see the broker's log", error_code=ErrorCode.UNKNOWN_SERVER_ERROR
        )
        self._answer_error(context, request, error)

    def _refuse_version(
        self, connection: Connection, exchange: Exchange, api_key: ApiKey, version: int, correlation_id: int
    ) -> None:
        """ApiVersions returns the served versions, in version 0; others close the connection, as in Kafka."""
        if api_key is ApiKey.API_VERSIONS:
            answer = answer_to_unknown_api_versions(self._served)
            exchange.answer(encode_response(api_key, 0, correlation_id, answer))
            return
        versions = self._served.get(api_key)
        served = f"versions {versions.low}-{versions.high}" if versions else "nothing"
        refused = UnsupportedVersion(api_key.name, version, *(versions or (0, -1)))
        log.warning("%s asked for %s v%d; served: %s", connection.peer, api_key.name, version, served)
        connection.close(str(refused))


def _leave(limit: RequestLimit, size: int, _: asyncio.Task[None]) -> None:
    limit.leave(size)
