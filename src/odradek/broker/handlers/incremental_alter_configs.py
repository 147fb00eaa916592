"""IncrementalAlterConfigs, API key 44: set, delete, append to and subtract from settings, one by one.

Versions 0-1.  1: flexible.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.config.alter import Change
from odradek.broker.config_resources import alter
from odradek.broker.context import RequestContext
from odradek.broker.dispatch import handles
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Asked = IncrementalAlterConfigsRequest.Resources
Row = IncrementalAlterConfigsResponse.Responses


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Each resource has its own answer, and all its changes happen or none."""
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
    return IncrementalAlterConfigsResponse(responses=rows)


async def _alter(context: RequestContext, asked: Asked, *, validate_only: bool) -> None:
    changes = [Change(config.name, config.config_operation, config.value) for config in asked.configs]
    await alter(
        context.services,
        asked.resource_type,
        asked.resource_name,
        lambda _: changes,
        validate_only=validate_only,
    )
