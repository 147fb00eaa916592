"""What the three APIs about ACLs share: the authorizer they need, and filters as the wire has them."""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.requests.services import Services
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import Authorizer
from odradek.cluster.acls import ClusterAcls
from odradek.common.acls import (
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.payloads import Entries
from odradek.protocol.messages import DeleteAclsRequest, DescribeAclsRequest


def require_authorizer(services: Services) -> tuple[Authorizer, ClusterAcls]:
    """The authorizer and its ACLs; KafkaError, SECURITY_DISABLED, if there is none."""
    if services.authorizer is None or services.acls is None:
        raise KafkaError(
            "No Authorizer is configured on the broker: set authorizer.class.name and restart it.",
            error_code=ErrorCode.SECURITY_DISABLED,
        )
    return services.authorizer, services.acls


def binding_filter(asked: DescribeAclsRequest | DeleteAclsRequest.Filters) -> AclBindingFilter:
    """The filter of a request."""
    return AclBindingFilter(
        ResourcePatternFilter(
            ResourceType(asked.resource_type_filter),
            asked.resource_name_filter,
            PatternType(asked.pattern_type_filter),
        ),
        AccessControlEntryFilter(
            asked.principal_filter,
            asked.host_filter,
            AclOperation(asked.operation),
            AclPermissionType(asked.permission_type),
        ),
    )


async def change(acls: ClusterAcls, pattern: ResourcePattern, make: Callable[[Entries], Entries]) -> None:
    """Change the ACLs of one pattern; a KafkaError says why not."""
    try:
        await from_store(acls.change(pattern, make))
    except DamagedPayload as damage:
        raise KafkaError(
            f"The ACLs of {pattern.resource_type.title} {pattern.name} in the store cannot be read; "
            f"mend or delete their node: {damage}"
        ) from damage
