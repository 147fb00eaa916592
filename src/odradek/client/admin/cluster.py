"""The cluster itself: its brokers, and the API versions of each."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.client.admin.base import AdminBase
from odradek.client.broker_errors import check
from odradek.client.metadata import NO_NODE
from odradek.client.network.api_versions import BrokerVersions
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker with its advertised address."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster: its id, its brokers by id, and its controller."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]


class ClusterAdmin(AdminBase):
    """The calls about the cluster."""

    async def describe_cluster(self, *, include_fenced_brokers: bool = False) -> ClusterDescription:
        """The brokers of the cluster; fenced ones only if the cluster supports that."""

        async def attempt() -> ClusterDescription:
            connection = await self.brokers.any_connection()
            if not connection.versions.serves(ApiKey.DESCRIBE_CLUSTER):
                return _by_metadata(
                    await connection.send_request(MetadataRequest(topics=[]), MetadataResponse)
                )
            request = DescribeClusterRequest()
            if include_fenced_brokers and connection.versions.serves(ApiKey.DESCRIBE_CLUSTER, at_least=2):
                request.include_fenced_brokers = True
            response = await connection.send_request(request, DescribeClusterResponse)
            check(response.error_code, response.error_message)
            brokers = [
                BrokerDescription(row.broker_id, row.host, row.port, row.rack, row.is_fenced)
                for row in response.brokers
            ]
            return _described(response.cluster_id, response.controller_id, brokers)

        return await self.brokers.retry("describing the cluster", attempt)

    async def api_versions(self, broker_id: int) -> BrokerVersions:
        """The API versions of one broker, as received when the connection was opened."""

        async def attempt() -> BrokerVersions:
            await self.brokers.ensure_fresh()
            return (await self.brokers.connection(broker_id)).versions

        return await self.brokers.retry("requesting API versions", attempt)


def _by_metadata(response: MetadataResponse) -> ClusterDescription:
    brokers = [BrokerDescription(row.node_id, row.host, row.port, row.rack) for row in response.brokers]
    return _described(response.cluster_id, response.controller_id, brokers)


def _described(
    cluster_id: str | None, controller_id: int, brokers: list[BrokerDescription]
) -> ClusterDescription:
    return ClusterDescription(
        cluster_id,
        controller_id if controller_id != NO_NODE else None,
        tuple(sorted(brokers, key=lambda broker: broker.broker_id)),
    )
