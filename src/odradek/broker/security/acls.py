"""May this principal do that: the words of Kafka's ACLs, and who decides. So far everybody may do everything.

What each API needs is in `permissions.py`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

ANONYMOUS = "User:ANONYMOUS"


class Operation(IntEnum):
    """What is done, numbered as the wire has it."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """What it is done to, numbered as the wire has it."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Resource(NamedTuple):
    """One thing that is protected."""

    type: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, "kafka-cluster")

_REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


class AccessDenied(KafkaError):
    """A principal may not do that; the code says to what kind of resource."""

    def __init__(self, principal: str, operation: Operation, resource: Resource) -> None:
        self.principal = principal
        self.operation = operation
        self.resource = resource
        super().__init__(
            f"{principal} may not {operation.name} {resource.type.name} {resource.name}",
            error_code=_REFUSALS[resource.type],
        )


class Authorizer(Protocol):
    """Who decides. Asked on the loop for every request, so it answers from memory."""

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Whether the principal may do that from there."""
        ...


class AllowAll:
    """Everybody may do everything, as Kafka has it without an authorizer."""

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Yes."""
        return True
