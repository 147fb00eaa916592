"""DescribeCluster, API key 60: brokers, controller and cluster id.

Versions 0-2.  1: endpoint type.  2: fenced brokers, of which there are none on ZooKeeper.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.authorized_operations import authorized_on_cluster
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS = 1


@handles(ApiKey.DESCRIBE_CLUSTER, versions=(0, 2))
def describe_cluster(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """From the metadata image."""
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type}: only brokers have listeners here",
        )
    response = context.answers().describe_cluster()
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_on_cluster(context.is_allowed)
    return response
