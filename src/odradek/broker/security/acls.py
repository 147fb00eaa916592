"""The interface between handlers and the authorizer, and the error of a client that is not allowed.

What each API needs is in `permissions.py`; how it is decided is in `authorizer.py`.
"""

from __future__ import annotations

from typing import Protocol

from odradek.common.acls import (
    ANONYMOUS,
    CLUSTER,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    Resource,
    ResourceType,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

__all__ = ["ANONYMOUS", "CLUSTER", "AccessDenied", "Authorizer", "Operation", "Resource", "ResourceType"]

Operation = AclOperation

_ERROR_CODES = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


class AccessDenied(KafkaError):
    """A principal may not do that; the error code names the type of resource."""

    def __init__(self, principal: str, operation: AclOperation, resource: Resource) -> None:
        self.principal = principal
        self.operation = operation
        self.resource = resource
        super().__init__(
            f"{principal} is not authorized: {operation.title} on {resource.type.title} {resource.name}",
            error_code=_ERROR_CODES[resource.type],
        )


class Authorizer(Protocol):
    """Decides what a client may do. Called on the loop for every request: it must not block."""

    def allows(self, principal: str, host: str, operation: AclOperation, resource: Resource) -> bool:
        """Whether the principal may do that to the resource from the host."""
        ...

    def acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """The ACLs that a filter finds."""
        ...

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the principal may do that to at least one resource of the type."""
        ...
