"""IncrementalAlterConfigs, API key 44: set, delete, append to and subtract from settings, one by one.

Versions 0-1.  1: flexible.
"""

from __future__ import annotations

from odradek.broker.config.alter import Change
from odradek.broker.config_resources import MakeChanges, alter_each
from odradek.broker.context import RequestContext
from odradek.broker.dispatch import handles
from odradek.broker.turns import Turns
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Asked = IncrementalAlterConfigsRequest.Resources
Row = IncrementalAlterConfigsResponse.Responses


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Each resource has its own answer, and all its changes happen or none."""
    turns = Turns()
    wishes = [
        ((asked.resource_type, asked.resource_name), _changes_of(asked))
        async for asked in turns.over(request.resources)
    ]
    answers = await alter_each(context.services, wishes, validate_only=request.validate_only)
    rows = [
        Row(resource_type=kind, resource_name=name, error_code=error_code, error_message=message)
        async for (kind, name), error_code, message in turns.over(answers)
    ]
    return IncrementalAlterConfigsResponse(responses=rows)


def _changes_of(asked: Asked) -> MakeChanges:
    changes = [Change(config.name, config.config_operation, config.value) for config in asked.configs]
    return lambda _: changes
