# cython: annotation_typing=False
"""What a handler gets beside its request: its client, its version, and how to respond.

Compiled by Cython (context.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import cython

from odradek.broker.security.acls import ANONYMOUS, CLUSTER, AccessDenied, Operation, Resource, ResourceType
from odradek.broker.security.quotas import Quotas
from odradek.cluster.metadata_answers import MetadataAnswers
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.protocol.api import (
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.codec import encode_frame, new_struct
from odradek.protocol.errors import EncodeError
from odradek.protocol.messages import RequestHeader, ResponseHeader
from odradek.protocol.structs import Message, default_plan

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

if TYPE_CHECKING:
    from odradek.broker.requests.services import Services

logger = logging.getLogger(__name__)

_RESPONSE_HEADER = default_plan(ResponseHeader)


class RequestVersion:
    """One version of an API: how its requests are read and its responses written."""

    __slots__ = (
        "api_key",
        "header_plan",
        "request_plan",
        "response_header_plan",
        "response_plan",
        "version",
    )

    def __init__(self, api_key: ApiKey, version: int) -> None:
        self.api_key = api_key
        self.version = version
        self.header_plan = RequestHeader.plan(request_header_version(api_key, version))
        self.request_plan = request_class(api_key).plan(version)
        self.response_header_plan = ResponseHeader.plan(response_header_version(api_key, version))
        self.response_plan = response_class(api_key).plan(version)


class RequestContext:
    """One request while it is handled. Created by the dispatcher, used by one handler."""

    __slots__ = (
        "api_key",
        "client_id",
        "connection",
        "correlation_id",
        "counters",
        "exchange",
        "listener",
        "request_version",
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
        request_version: RequestVersion,
        correlation_id: int,
        client_id: str | None,
        counters: RequestCounters,
    ) -> None:
        self.services = services
        self.listener = listener
        self.connection = connection
        self.exchange = exchange
        self.request_version = request_version
        self.api_key = request_version.api_key
        self.version = request_version.version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.counters = counters
        self.started = monotonic_seconds()

    @property
    def client_host(self) -> str:
        """The client's address, as Java prints one without a name."""
        return "/" + self.connection.host

    def answers(self) -> MetadataAnswers:
        """The cluster's metadata as clients of this listener see it."""
        return self.services.answers_for(self.listener)

    def answer(self, response: Message) -> None:
        """Send the response; once per request."""
        quotas = self.services.quotas
        if quotas is not None:
            self._throttle(quotas, response)
        request_version = self.request_version
        header = new_struct(_RESPONSE_HEADER)
        header.correlation_id = self.correlation_id
        try:
            parts = encode_frame(
                request_version.response_header_plan, header, request_version.response_plan, response
            )
        except EncodeError:
            # The client must not wait for a response that cannot be sent.
            logger.exception("the response to %s v%d cannot be encoded", self.api_key.name, self.version)
            self.connection.close("there is no response to its request")
            return
        counters = self.counters
        counters.seconds += monotonic_seconds() - self.started
        for part in parts:
            counters.response_bytes += len(part)
        self.exchange.answer(parts)

    def answer_nothing(self) -> None:
        """The client does not expect a response."""
        quotas = self.services.quotas
        if quotas is not None:
            self._throttle(quotas, None)
        self.counters.seconds += monotonic_seconds() - self.started
        self.exchange.answer(())

    def _throttle(self, quotas: Quotas, response: Message | None) -> None:
        """Do not read from the client for its throttle time, which the response names if it has the field."""
        throttle_time_ms = quotas.throttle_time_ms(self.api_key, self.principal, self.client_id)
        if throttle_time_ms <= 0:
            return
        if response is not None and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_time_ms
        self.connection.mute(throttle_time_ms / 1000)

    def is_allowed(self, operation: Operation, resource: Resource) -> bool:
        """Whether the client may do that; for handlers that report a refusal for each resource."""
        authorizer = self.services.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.principal, self.connection.host, operation, resource)

    def is_allowed_anywhere(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client may do that to at least one resource of the type."""
        authorizer = self.services.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_any(self.principal, self.connection.host, operation, resource_type)

    def authorize(self, operation: Operation, resource: Resource = CLUSTER) -> None:
        """AccessDenied unless the client may do that."""
        if not self.is_allowed(operation, resource):
            raise AccessDenied(self.principal, operation, resource)

    @property
    def principal(self) -> str:
        """The client's principal; anonymous on a listener without authentication."""
        return ANONYMOUS
