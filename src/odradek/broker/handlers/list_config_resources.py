"""ListConfigResources, API key 74: the resources that have settings.

Versions 0-1.  0: only subscriptions of client metrics, of which we have none.  1: types can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.requests.config_resources import ConfigResourceType
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

Resource = ListConfigResourcesResponse.ConfigResources

TYPES_SINCE = 1


@handles(ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1))
def list_config_resources(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """From the metadata image; no types asked for means all."""
    if context.version < TYPES_SINCE:
        return ListConfigResourcesResponse()
    types = dict.fromkeys(request.resource_types or ConfigResourceType)
    if not set(types) <= set(ConfigResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            Resource(resource_name=name, resource_type=number)
            for number in types
            for name in _names(context, number)
        ]
    )


def _names(context: RequestContext, number: int) -> Iterable[str]:
    image = context.services.image
    if number == ConfigResourceType.TOPIC:
        return sorted(image.topics)
    if number == ConfigResourceType.BROKER:
        return [str(broker_id) for broker_id in sorted(image.brokers)]
    if number == ConfigResourceType.GROUP:
        return context.services.group_configs.group_ids()
    return ()
