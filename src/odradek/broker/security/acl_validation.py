"""Which ACLs can be created and which filters can be used, with the errors of Kafka's AclControlManager."""

from __future__ import annotations

from odradek.common.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination import paths
from odradek.coordination.errors import InvalidPath
from odradek.coordination.znodes import check_path


def check_binding(binding: AclBinding) -> None:
    """KafkaError, INVALID_REQUEST, if there can be no such ACL."""
    pattern, entry = binding
    if pattern.resource_type <= ResourceType.ANY:
        raise _invalid(f"Invalid resourceType {pattern.resource_type.name}")
    if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern.pattern_type.name}")
    if entry.operation <= AclOperation.ANY:
        raise _invalid(f"Invalid operation {entry.operation.name}")
    if entry.permission_type not in (AclPermissionType.DENY, AclPermissionType.ALLOW):
        raise _invalid(f"Invalid permissionType {entry.permission_type.name}")
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not pattern.name:
        raise _invalid("Invalid empty resource name")
    _check_principal(entry.principal)
    _check_name(binding)


def _check_principal(principal: str) -> None:
    kind, colon, name = principal.partition(":")
    if not colon:
        raise _invalid(
            f"Could not parse principal from `{principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    if not kind or not name:
        raise _invalid(f"Invalid principal `{principal}`: it must be like User:alice")


def _check_name(binding: AclBinding) -> None:
    """The name is the name of a node in the store."""
    try:
        check_path(paths.acls(binding.pattern))
    except InvalidPath:
        is_valid = False
    else:
        is_valid = "/" not in binding.pattern.name
    if not is_valid:
        raise _invalid(f"ACL binding contains invalid resource name: {binding.pattern.name}")


def check_filter(wanted: AclBindingFilter) -> None:
    """Raise KafkaError, INVALID_REQUEST, if the filter has an undefined value."""
    pattern, entry = wanted
    if pattern.resource_type is ResourceType.UNKNOWN or pattern.pattern_type is PatternType.UNKNOWN:
        raise _invalid("Unknown patternFilter.")
    if entry.operation is AclOperation.UNKNOWN or entry.permission_type is AclPermissionType.UNKNOWN:
        raise _invalid("Unknown entryFilter.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(message, error_code=ErrorCode.INVALID_REQUEST)
