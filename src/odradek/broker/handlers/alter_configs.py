"""AlterConfigs, API key 33: replace all settings of topics and brokers; whatever is not named goes.

Versions 0-2.  2: flexible.  IncrementalAlterConfigs is what clients should use.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.config.alter import Change, Operation
from odradek.broker.config_resources import alter, replacing
from odradek.broker.context import RequestContext
from odradek.broker.dispatch import handles
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

Asked = AlterConfigsRequest.Resources
Row = AlterConfigsResponse.Responses


@handles(ApiKey.ALTER_CONFIGS, versions=(0, 2))
async def alter_configs(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Each resource has its own answer."""
    counts = Counter((asked.resource_type, asked.resource_name) for asked in request.resources)
    rows = []
    for asked in request.resources:
        row = Row(resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None)
        rows.append(row)
        try:
            if counts[asked.resource_type, asked.resource_name] > 1:
                message = "Each resource must appear at most once."
                raise KafkaError(message, error_code=ErrorCode.INVALID_REQUEST)
            await _alter(context, asked, validate_only=request.validate_only)
        except KafkaError as error:
            row.error_code, row.error_message = error.error_code, str(error)
    return AlterConfigsResponse(responses=rows)


async def _alter(context: RequestContext, asked: Asked, *, validate_only: bool) -> None:
    changes = [Change(config.name, Operation.SET, config.value) for config in asked.configs]
    await alter(
        context.services,
        asked.resource_type,
        asked.resource_name,
        lambda stored: replacing(changes, stored),
        validate_only=validate_only,
    )
