"""The resources of the config APIs: a topic, a group, this broker, or all brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.services import Services
from odradek.broker.requests.store_calls import from_store
from odradek.broker.settings.alter import Change, Operation, alter_topic
from odradek.common.acls import CLUSTER, AclOperation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import check_topic_name

CLUSTER_DEFAULT = ""
MakeChanges = Callable[[Mapping[str, str]], Sequence[Change]]


class ChangeResult(NamedTuple):
    """The result of changing one resource; fields as in the rows of both APIs."""

    resource_type: int
    resource_name: str
    error_code: ErrorCode
    error_message: str | None


class ConfigResourceType(IntEnum):
    """Numbered as the wire has it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def resource_type(number: int) -> ConfigResourceType:
    """The type, if its settings are supported."""
    if number in {ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.GROUP}:
        return ConfigResourceType(number)
    name = ConfigResourceType(number).name if number in set(ConfigResourceType) else str(number)
    raise KafkaError(f"Unsupported resource type: {name}.", error_code=ErrorCode.INVALID_REQUEST)


def authorize_configs(
    context: RequestContext, kind: ConfigResourceType, name: str, operation: AclOperation
) -> None:
    """AccessDenied unless the client may do that to the settings; those of brokers are the cluster's."""
    if kind is ConfigResourceType.TOPIC:
        context.authorize(operation, Resource.topic(name))
    elif kind is ConfigResourceType.GROUP:
        context.authorize(operation, Resource.group(name))
    else:
        context.authorize(operation, CLUSTER)


def require_topic(services: Services, name: str) -> None:
    """Refuse an invalid or unknown topic."""
    check_topic_name(name)
    if name not in services.image.topics:
        raise KafkaError(
            f"The topic '{name}' does not exist.", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )


def require_group_name(name: str) -> None:
    """Refuse an empty group name; a group may have settings before it exists."""
    if not name:
        raise _invalid("Group name must not be empty")


def is_default_broker(services: Services, name: str) -> bool:
    """Whether all brokers are meant; any name but that and our own id is refused."""
    if name == CLUSTER_DEFAULT:
        return True
    try:
        broker_id = int(name)
    except ValueError:
        raise _invalid(f"Broker id must be an integer, but it is: {name}") from None
    if broker_id != services.broker_id:
        raise _invalid(
            f"Unexpected broker id, expected {services.broker_id} or empty string, but received {name}"
        )
    return False


async def alter_each(
    context: RequestContext,
    asked: Sequence[Any],
    changes_of: Callable[[Any], MakeChanges],
    *,
    validate_only: bool,
) -> list[ChangeResult]:
    """Change the settings of each resource as `changes_of` says; one result for each, in order."""
    counts = Counter((one.resource_type, one.resource_name) for one in asked)
    answers = []
    async for one in CooperativeYield().over(asked):
        resource = one.resource_type, one.resource_name
        error_code, message = ErrorCode.NONE, None
        try:
            if counts[resource] > 1:
                raise _invalid("Each resource must appear at most once.")
            await _alter(context, *resource, changes_of(one), validate_only=validate_only)
        except KafkaError as error:
            error_code, message = error.error_code, str(error)
        answers.append(ChangeResult(*resource, error_code, message))
    return answers


async def _alter(
    context: RequestContext, type_number: int, name: str, changes_of: MakeChanges, *, validate_only: bool
) -> None:
    """Change the settings of one resource; raises KafkaError if it cannot."""
    services = context.services
    kind = resource_type(type_number)
    authorize_configs(context, kind, name, AclOperation.ALTER_CONFIGS)
    if kind is ConfigResourceType.TOPIC:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        check_topic_name(name)
        config = services.config()
        changing: Coroutine[Any, Any, Any] = services.topics.change_configs(
            name, lambda stored: alter_topic(config, stored, changes_of(stored)), validate_only=validate_only
        )
    elif kind is ConfigResourceType.GROUP:
        if not name:
            raise _invalid("Default group resources are not allowed.")
        changing = services.group_configs.change(name, changes_of, validate_only=validate_only)
    else:
        is_default = is_default_broker(services, name)
        changing = services.broker_settings.change(
            changes_of, is_default=is_default, validate_only=validate_only
        )
    await from_store(changing)


def replacing(changes: Sequence[Change], stored: Mapping[str, str]) -> list[Change]:
    """The same changes, and the deletion of everything that they do not name."""
    named = {change.name for change in changes}
    return [*changes, *(Change(name, Operation.DELETE) for name in stored if name not in named)]


def _invalid(message: str) -> KafkaError:
    return KafkaError(message, error_code=ErrorCode.INVALID_REQUEST)
