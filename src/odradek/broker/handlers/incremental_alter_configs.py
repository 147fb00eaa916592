"""IncrementalAlterConfigs, API key 44: set, delete, append to and subtract from settings, one by one.

Versions 0-1.  1: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.config_resources import MakeChanges, alter_each
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.settings.alter import Change
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Asked = IncrementalAlterConfigsRequest.Resources
Row = IncrementalAlterConfigsResponse.Responses


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Each resource has its own result; its changes are applied all or not at all."""
    answers = await alter_each(context, request.resources, _changes_of, validate_only=request.validate_only)
    rows = [Row(**answer._asdict()) async for answer in CooperativeYield().over(answers)]
    return IncrementalAlterConfigsResponse(responses=rows)


def _changes_of(asked: Asked) -> MakeChanges:
    changes = [Change(config.name, config.config_operation, config.value) for config in asked.configs]
    return lambda _: changes
