"""DescribeConfigs, API key 32: every setting of topics, groups and brokers, its source and its meaning.

Versions 1-4, as Kafka 4.  1: sources and synonyms.  3: types and documents.  4: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.config_resources import (
    ConfigResourceType,
    authorize_configs,
    is_default_broker,
    require_group_name,
    require_topic,
    resource_type,
)
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import Operation
from odradek.broker.settings.describe import (
    Row,
    describe_broker,
    describe_default_broker,
    describe_group,
    describe_topic,
)
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

Asked = DescribeConfigsRequest.Resources
Result = DescribeConfigsResponse.Results

# Each of them may have hundreds of rows.
RESULTS_PER_YIELD = 100


@handles(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
async def describe_configs(
    context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Each resource has its own result; a resource named twice is returned once."""
    wanted = {(asked.resource_type, asked.resource_name): asked for asked in reversed(request.resources)}
    yielding = CooperativeYield(RESULTS_PER_YIELD)
    results = [
        await _describe(context, request, asked) async for asked in yielding.over(reversed(wanted.values()))
    ]
    return DescribeConfigsResponse(results=results)


async def _describe(context: RequestContext, request: DescribeConfigsRequest, asked: Asked) -> Result:
    result = Result(resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None)
    try:
        rows = await _rows(context, asked)
    except KafkaError as error:
        result.error_code, result.error_message = error.error_code, str(error)
        return result
    # An empty list asks for all, as null does.
    keys = set(asked.configuration_keys or ())
    result.configs = [_config(request, row) for row in rows if not keys or row.name in keys]
    return result


async def _rows(context: RequestContext, asked: Asked) -> list[Row]:
    """Read from the store, so that a client sees its own changes at once."""
    services = context.services
    kind = resource_type(asked.resource_type)
    authorize_configs(context, kind, asked.resource_name, Operation.DESCRIBE_CONFIGS)
    if kind is ConfigResourceType.TOPIC:
        require_topic(services, asked.resource_name)
        overrides = await from_store(services.topics.read_configs(asked.resource_name))
        return describe_topic(services.config(), overrides)
    if kind is ConfigResourceType.GROUP:
        require_group_name(asked.resource_name)
        overrides = await from_store(services.group_configs.read(asked.resource_name))
        return describe_group(services.config(), overrides)
    is_default = is_default_broker(services, asked.resource_name)
    sources = await from_store(services.broker_settings.sources())
    return describe_default_broker(sources) if is_default else describe_broker(sources)


def _config(request: DescribeConfigsRequest, row: Row) -> Result.Configs:
    config = Result.Configs(
        name=row.name,
        value=row.value,
        read_only=row.is_read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        config_type=row.type_number,
        documentation=row.documentation if request.include_documentation else None,
    )
    if request.include_synonyms:
        config.synonyms = [
            Result.Configs.Synonyms(name=one.name, value=one.value, source=one.source) for one in row.synonyms
        ]
    return config
