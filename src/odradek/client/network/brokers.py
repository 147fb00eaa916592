"""Connections to all brokers of a cluster: bootstrap, one connection for each broker, retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from odradek.client.broker_errors import check
from odradek.client.config import ClientConfig
from odradek.client.errors import (
    AdvertisedListenerUnreachable,
    BrokerError,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    DeadlineExceeded,
    NoBrokersAvailable,
    is_retriable,
)
from odradek.client.metadata import Metadata, Node
from odradek.client.network.backoff import Backoff
from odradek.client.network.connecting import connect, format_address
from odradek.client.network.connection import BrokerConnection, Response
from odradek.common.c_clocks import monotonic_seconds
from odradek.common.error_codes import ErrorCode
from odradek.protocol.messages import MetadataResponse
from odradek.protocol.structs import Message

Result = TypeVar("Result")

ANYTHING = ""
"""The purpose of a connection on which nothing waits for long."""

# Errors after which the metadata is known to be wrong.
STALE_METADATA_ERRORS = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
    }
)


@dataclass(slots=True)
class _BrokerLink:
    """The connection to one broker, if there is one, and how often connecting has failed in a row.

    The connection is replaced only by the task that holds the lock.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: BrokerConnection | None = None
    failures: int = 0
    not_before_ms: float = 0.0


class Brokers:
    """All brokers of one cluster. Lives on one loop; owned by one client.

    Nothing is connected before the first request. Many tasks may send requests at the same time.
    """

    def __init__(self, config: ClientConfig, owner: str = "client", *, creates_topics: bool = False) -> None:
        self.config = config
        self.metadata = Metadata()
        self._owner = owner
        self._creates_topics = creates_topics  # by requesting metadata of topics that do not exist
        self._loop = asyncio.get_running_loop()
        self._links: dict[tuple[int, str], _BrokerLink] = {}  # by broker and purpose
        self._bootstrap_connection: BrokerConnection | None = None
        self._reached = ""  # the bootstrap server that responded last
        self._refreshing: asyncio.Task[None] | None = None
        self._retry = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._reconnect = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms)
        self._is_closed = False
        self.last_failure: BaseException | None = None
        """The error of the last attempt, None after a success: for messages about a timeout."""

    def now_ms(self) -> float:
        """The time of the loop's clock, which is monotonic; any thread may call this."""
        return monotonic_seconds() * 1000

    async def close(self) -> None:
        """Close every connection; requests in flight fail."""
        self._is_closed = True
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        open_ones = [link.connection for link in self._links.values()] + [self._bootstrap_connection]
        for connection in open_ones:
            if connection is not None:
                await connection.close()

    # Metadata.

    async def refresh(self) -> None:
        """Refresh the metadata; concurrent callers share one request."""
        if self._refreshing is None or self._refreshing.done():
            self._check_open()
            self._refreshing = asyncio.create_task(self._refresh())
        await asyncio.shield(self._refreshing)

    async def ensure_fresh(self) -> Metadata:
        """The metadata, refreshed first if it is stale or old."""
        while self.metadata.needs_refresh(self.now_ms(), self.config.metadata_max_age_ms):
            await self.refresh()
        return self.metadata

    async def _refresh(self) -> None:
        failure: ClientError | None = None
        for node_id in self._by_load():
            try:
                await self._request_metadata(await self.connection(node_id))
            except ClientError as error:
                failure = error
            else:
                return
        # No known broker responds. The bootstrap servers may know of others (KIP-899).
        try:
            await self._connect_to_bootstrap_server()
        except NoBrokersAvailable:
            if failure is not None:
                raise failure from None
            raise

    async def _connect_to_bootstrap_server(self) -> None:
        reasons: dict[str, str] = {}
        if self._bootstrap_connection is not None:
            await self._bootstrap_connection.close()
        for host, port in self.config.addresses():
            address = format_address(host, port)
            try:
                connection = await self._connect(host, port)
                await self._request_metadata_or_close(connection)
            except ConnectionFailed as error:
                reasons[address] = error.reason
            except ClientError as error:
                reasons[address] = str(error)
            else:
                self._keep_bootstrap_connection(connection, host, port)
                self._reached = address
                return
        raise NoBrokersAvailable(reasons)

    def _keep_bootstrap_connection(self, connection: BrokerConnection, host: str, port: int) -> None:
        """Use the bootstrap connection for its broker, if that advertises the same address.

        Not while another task opens one, which would replace this one and leave it open.
        """
        for node in self.metadata.nodes.values():
            if (node.host, node.port) == (host, port):
                link = self._links.setdefault((node.node_id, ANYTHING), _BrokerLink())
                has_one = link.connection is not None and link.connection.is_open
                if not has_one and not link.lock.locked():
                    link.connection = connection
                    return
        self._bootstrap_connection = connection

    async def _request_metadata_or_close(self, connection: BrokerConnection) -> None:
        """Request metadata on a new connection; closes it on failure."""
        try:
            await self._request_metadata(connection)
        except BaseException:
            await connection.close()
            raise

    async def _request_metadata(self, connection: BrokerConnection) -> None:
        request = self.metadata.request(may_create=self._creates_topics)
        response = await connection.send_request(request, MetadataResponse)
        check(response.error_code)
        self.metadata.update(response, self.now_ms())

    # Connections.

    def _by_load(self) -> list[int]:
        """All brokers in the order in which to try them: connected ones first, the least busy first."""

        def busy(node_id: int) -> tuple[bool, int, float]:
            link = self._links.get((node_id, ANYTHING))
            connection = link.connection if link is not None else None
            is_open = connection is not None and connection.is_open
            return not is_open, connection.in_flight if connection is not None else 0, random.random()

        return sorted(self.metadata.nodes, key=busy)

    async def connection(self, node_id: int, purpose: str = ANYTHING) -> BrokerConnection:
        """An open connection to a broker, opened if necessary, after the backoff of earlier failures.

        Responses come in order: requests that a broker may delay (fetch, join) need a connection of their
        own.
        """
        link = self._links.setdefault((node_id, purpose), _BrokerLink())
        if self._is_usable(link.connection):
            assert link.connection is not None
            return link.connection
        async with link.lock:
            if not self._is_usable(link.connection):
                if link.connection is not None:
                    await link.connection.close()
                    link.connection = None
                link.connection = await self._open(node_id, link)
            assert link.connection is not None
            return link.connection

    def open_connection(self, node_id: int, purpose: str = ANYTHING) -> BrokerConnection | None:
        """The connection to a broker if one is open now; never waits."""
        link = self._links.get((node_id, purpose))
        return link.connection if link is not None and self._is_usable(link.connection) else None

    def _is_usable(self, connection: BrokerConnection | None) -> bool:
        if connection is None or not connection.is_open:
            return False
        # Firewalls and brokers may drop idle connections without closing them.
        limit_ms = self.config.connections_max_idle_ms
        is_idle = not connection.in_flight and self.now_ms() - connection.last_used_ms > limit_ms
        return limit_ms < 0 or not is_idle

    async def _open(self, node_id: int, link: _BrokerLink) -> BrokerConnection:
        pause_ms = link.not_before_ms - self.now_ms()
        if pause_ms > 0:
            await asyncio.sleep(pause_ms / 1000)
        node = self.metadata.nodes.get(node_id)
        if node is None:
            raise ConnectionFailed(f"broker {node_id}", "the cluster does not list it any more")
        try:
            connection = await self._connect(node.host, node.port)
        except ConnectionFailed as error:
            link.failures += 1
            pause_ms = self._reconnect.pause_ms(link.failures, random.random())
            link.not_before_ms = self.now_ms() + pause_ms
            raise self._with_advertised_address(node, error) from None
        link.failures = 0
        return connection

    def _with_advertised_address(self, node: Node, error: ConnectionFailed) -> ConnectionFailed:
        address = format_address(node.host, node.port)
        if not self._reached or address == self._reached:
            return error
        return AdvertisedListenerUnreachable(node.node_id, address, error.reason, self._reached)

    async def _connect(self, host: str, port: int) -> BrokerConnection:
        self._check_open()
        connection = await connect(
            host,
            port,
            client_id=self.config.client_id,
            request_timeout_ms=self.config.request_timeout_ms,
            setup_timeout_ms=self.config.socket_connection_setup_timeout_ms,
            allows_direct_read=self.config.odradek_direct_read,
        )
        if self._is_closed:
            await connection.close()
        self._check_open()
        return connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed(self._owner)

    # Requests.

    async def any_connection(self) -> BrokerConnection:
        """A connection to any broker."""
        if not self.metadata.nodes:
            await self.ensure_fresh()
        if self._is_usable(self._bootstrap_connection):
            assert self._bootstrap_connection is not None
            return self._bootstrap_connection
        return await self.reach_one()

    async def reach_one(self) -> BrokerConnection:
        """A connection to one of the brokers that the cluster lists, the least busy that can be reached."""
        failure: ClientError | None = None
        for node_id in self._by_load():
            try:
                return await self.connection(node_id)
            except ConnectionFailed as error:
                failure = error
        self.metadata.mark_stale()
        raise failure or NoBrokersAvailable({"the cluster": "it lists no broker"})

    async def send_to_any(
        self, request: Message, response_class: type[Response], *, timeout_ms: int | None = None
    ) -> Response:
        """Send a request to any broker and return its response."""
        connection = await self.any_connection()
        return await connection.send_request(request, response_class, timeout_ms=timeout_ms)

    async def send_to_node(
        self,
        node_id: int,
        request: Message,
        response_class: type[Response],
        *,
        timeout_ms: int | None = None,
    ) -> Response:
        """Send a request to one broker and return its response."""
        if node_id not in self.metadata.nodes:
            await self.ensure_fresh()
        connection = await self.connection(node_id)
        return await connection.send_request(request, response_class, timeout_ms=timeout_ms)

    async def send_to_controller(
        self, request: Message, response_class: type[Response], *, timeout_ms: int | None = None
    ) -> Response:
        """Send a request to the controller and return its response."""
        metadata = await self.ensure_fresh()
        if metadata.controller_id not in metadata.nodes:
            metadata.mark_stale()
            check(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at present")
        return await self.send_to_node(metadata.controller_id, request, response_class, timeout_ms=timeout_ms)

    async def retry(
        self, what: str, attempt: Callable[[], Awaitable[Result]], *, timeout_ms: int | None = None
    ) -> Result:
        """The result of `attempt`, repeated after retriable errors until the timeout."""
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self.now_ms() + timeout_ms
        failures, last = 0, None
        try:
            async with asyncio.timeout_at(deadline_ms / 1000):
                while True:
                    try:
                        result = await attempt()
                    except (BrokerError, ClientError) as error:
                        if not is_retriable(error):
                            raise
                        failures, last = failures + 1, error
                        self.last_failure = error
                    else:
                        self.last_failure = None
                        return result
                    self._mark_stale_after(last)
                    await asyncio.sleep(self._retry.pause_ms(failures, random.random()) / 1000)
        except TimeoutError as over:
            if isinstance(over, ClientError):
                raise
            raise DeadlineExceeded(what, timeout_ms, last) from last

    def _mark_stale_after(self, error: BrokerError | ClientError) -> None:
        if isinstance(error, ClientError) or error.error_code in STALE_METADATA_ERRORS:
            self.metadata.mark_stale()
