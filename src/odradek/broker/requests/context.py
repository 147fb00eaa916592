"""What a handler gets beside its request: who asks, in which version, and the way to answer."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from odradek.broker.security.acls import ANONYMOUS, CLUSTER, AccessDenied, Operation, Resource
from odradek.broker.security.quotas import Quotas
from odradek.cluster.metadata_answers import MetadataAnswers
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import EncodeError
from odradek.protocol.headers import encode_response
from odradek.protocol.structs import Message

if TYPE_CHECKING:
    from odradek.broker.requests.services import Services

logger = logging.getLogger(__name__)


class RequestContext:
    """One request on its way. Made by the dispatcher, used by one handler."""

    __slots__ = (
        "api_key",
        "client_id",
        "connection",
        "correlation_id",
        "counters",
        "exchange",
        "listener",
        "services",
        "started",
        "version",
    )

    def __init__(
        self,
        services: Services,
        listener: str,
        connection: Connection,
        exchange: Exchange,
        api_key: ApiKey,
        version: int,
        correlation_id: int,
        client_id: str | None,
        counters: RequestCounters,
    ) -> None:
        self.services = services
        self.listener = listener
        self.connection = connection
        self.exchange = exchange
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.counters = counters
        self.started = perf_counter()

    @property
    def client_host(self) -> str:
        """Where the client is, as Java prints an address without a name."""
        return "/" + self.connection.peer.rpartition(":")[0]

    def answers(self) -> MetadataAnswers:
        """What the clients of this listener are told of the cluster."""
        return self.services.answers_for(self.listener)

    def answer(self, response: Message) -> None:
        """Send the response; once per request."""
        if self.services.quotas is not None:
            self._throttle(self.services.quotas, response)
        try:
            parts = encode_response(self.api_key, self.version, self.correlation_id, response)
        except EncodeError:
            # An answer that cannot be sent must not leave its client waiting for ever.
            logger.exception("a bug in %s v%d, in its answer", self.api_key.name, self.version)
            self.connection.close("there is no answer to its request")
            return
        counters = self.counters
        counters.seconds += perf_counter() - self.started
        for part in parts:
            counters.response_bytes += len(part)
        self.exchange.answer(parts)

    def answer_nothing(self) -> None:
        """The client does not expect a response."""
        if self.services.quotas is not None:
            self._throttle(self.services.quotas, None)
        self.counters.seconds += perf_counter() - self.started
        self.exchange.answer(())

    def _throttle(self, quotas: Quotas, response: Message | None) -> None:
        """Tell the client how long it is held back, where the answer has a place for it; hold it back."""
        throttle_time_ms = quotas.throttle_time_ms(self.api_key, self.principal, self.client_id)
        if throttle_time_ms <= 0:
            return
        if response is not None and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_time_ms
        self.connection.mute(throttle_time_ms / 1000)

    def is_allowed(self, operation: Operation, resource: Resource) -> bool:
        """Whether the client may do that; for handlers that answer a refusal row by row."""
        authorizer = self.services.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.principal, self.client_host, operation, resource)

    def authorize(self, operation: Operation, resource: Resource = CLUSTER) -> None:
        """AccessDenied unless the client may do that."""
        if not self.is_allowed(operation, resource):
            raise AccessDenied(self.principal, operation, resource)

    @property
    def principal(self) -> str:
        """Who the client is; nobody in particular on a listener without authentication."""
        return ANONYMOUS
