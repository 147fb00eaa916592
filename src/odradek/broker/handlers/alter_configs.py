"""AlterConfigs, API key 33: replace all settings of topics and brokers; others are removed.

Versions 0-2.  2: flexible.  IncrementalAlterConfigs is what clients should use.
"""

from __future__ import annotations

from odradek.broker.requests.config_resources import MakeChanges, alter_each, replacing
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.settings.alter import Change, Operation
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

Asked = AlterConfigsRequest.Resources
Row = AlterConfigsResponse.Responses


@handles(ApiKey.ALTER_CONFIGS, versions=(0, 2))
async def alter_configs(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Each resource has its own result."""
    answers = await alter_each(context, request.resources, _changes_of, validate_only=request.validate_only)
    rows = [Row(**answer._asdict()) async for answer in CooperativeYield().over(answers)]
    return AlterConfigsResponse(responses=rows)


def _changes_of(asked: Asked) -> MakeChanges:
    changes = [Change(config.name, Operation.SET, config.value) for config in asked.configs]
    return lambda stored: replacing(changes, stored)
