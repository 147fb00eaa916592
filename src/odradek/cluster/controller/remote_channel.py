"""The controller's connection to a broker of another process."""

from __future__ import annotations

from odradek.cluster.controller.channels import DeliveryFailed
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.membership.brokers import Broker
from odradek.net.broker_connection import Address, BrokerConnection, RequestFailed
from odradek.protocol.messages import LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse


class RemoteChannel:
    """One connection. Owned by the task that sends to this broker, as long as its registration lasts."""

    def __init__(self, broker: Broker, listener: str, client_id: str, timeout_s: float) -> None:
        self._listener = listener
        self._timeout_s = timeout_s
        endpoint = broker.endpoint(listener)
        self._connection = (
            None if endpoint is None else BrokerConnection(Address(endpoint.host, endpoint.port), client_id)
        )

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Send one request and wait for its response; DeliveryFailed if either is lost."""
        if self._connection is None:
            raise DeliveryFailed(f"the broker has no listener {self._listener}")
        try:
            response = await self._connection.send(request, timeout_s=self._timeout_s)
        except RequestFailed as error:
            raise DeliveryFailed(str(error)) from error
        assert isinstance(response, LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse)
        return response

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
