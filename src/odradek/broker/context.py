"""What a handler gets beside its request: who asks, in which version, and the way to answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cluster.metadata_answers import MetadataAnswers
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_response
from odradek.protocol.structs import Message

if TYPE_CHECKING:
    from odradek.broker.services import Services


class RequestContext:
    """One request on its way. Made by the dispatcher, used by one handler."""

    __slots__ = (
        "api_key",
        "client_id",
        "connection",
        "correlation_id",
        "exchange",
        "listener",
        "services",
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
    ) -> None:
        self.services = services
        self.listener = listener
        self.connection = connection
        self.exchange = exchange
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id

    @property
    def client_host(self) -> str:
        """Where the client is, as Java prints an address without a name."""
        return "/" + self.connection.peer.rpartition(":")[0]

    def answers(self) -> MetadataAnswers:
        """What the clients of this listener are told of the cluster."""
        return self.services.answers_for(self.listener)

    def answer(self, response: Message) -> None:
        """Send the response; once per request."""
        self.exchange.answer(encode_response(self.api_key, self.version, self.correlation_id, response))

    def answer_nothing(self) -> None:
        """The client does not expect a response."""
        self.exchange.answer(())
