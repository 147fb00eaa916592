"""CreatePartitions, API key 37: add partitions to topics; returns when they have leaders.

Versions 0-3.  1: throttle time.  2: flexible.  3: the quota of creations may be exceeded.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

Asked = CreatePartitionsRequest.Topics
Row = CreatePartitionsResponse.Results

# As for CreateTopics: a request for more would keep the controller from everything else.
MAX_ADDED_PER_TOPIC = 10_000


@handles(ApiKey.CREATE_PARTITIONS, versions=(0, 3))
async def create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Each topic has its own result; all are extended first, then awaited together."""
    deadline = context.services.loop.time() + request.timeout_ms / 1000
    counts = Counter(topic.name for topic in request.topics)
    rows = [_refusal(name, _twice()) for name, count in counts.items() if count > 1]
    grown: list[Asked] = []
    async for asked in CooperativeYield().over(request.topics):
        if counts[asked.name] > 1:
            continue
        try:
            await _grow(context, asked, deadline, validate_only=request.validate_only)
            grown.append(asked)
        except KafkaError as error:
            rows.append(_refusal(asked.name, error))
    if request.validate_only:
        rows += [Row(name=asked.name) for asked in grown]
    else:
        rows += [await _wait(context, asked, deadline) for asked in grown]
    return CreatePartitionsResponse(results=rows)


async def _grow(context: RequestContext, asked: Asked, deadline: float, *, validate_only: bool) -> None:
    services = context.services
    context.authorize(Operation.ALTER, Resource.topic(asked.name))
    if services.loop.time() > deadline:
        raise KafkaError(
            "The request timed out before it was processed.", error_code=ErrorCode.REQUEST_TIMED_OUT
        )
    known = services.image.topics.get(asked.name)
    if known is not None and asked.count - len(known.partitions) > MAX_ADDED_PER_TOPIC:
        raise KafkaError(
            f"No more than {MAX_ADDED_PER_TOPIC} partitions can be added at once.",
            error_code=ErrorCode.POLICY_VIOLATION,
        )
    manual = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
    await from_store(
        services.topics.create_partitions(asked.name, asked.count, manual, validate_only=validate_only),
        deadline - services.loop.time(),
    )


async def _wait(context: RequestContext, asked: Asked, deadline: float) -> Row:
    remaining_ms = int((deadline - context.services.loop.time()) * 1000)
    if await context.services.wait_for_topic(asked.name, remaining_ms, asked.count):
        return Row(name=asked.name)
    late = KafkaError(
        "The partitions were made, but not all have leaders yet.", error_code=ErrorCode.REQUEST_TIMED_OUT
    )
    return _refusal(asked.name, late)


def _twice() -> KafkaError:
    return KafkaError("Duplicate topic name.", error_code=ErrorCode.INVALID_REQUEST)


def _refusal(name: str, error: KafkaError) -> Row:
    return Row(name=name, error_code=error.error_code, error_message=str(error))
