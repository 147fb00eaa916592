"""Kafka's access control lists as values: resources, patterns, entries, and the filters that find them.

    an ACL      "principal P is allowed (or denied) operation O from host H on what pattern R matches"
    a pattern   a resource type, a name and how the name is meant: literally, or as a prefix

The numbers are those of the protocol; `title` is the word that Kafka's znodes and its kafka-acls tool use.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

ANONYMOUS = "User:ANONYMOUS"
WILDCARD_PRINCIPAL = "User:*"
WILDCARD_HOST = "*"
WILDCARD_RESOURCE = "*"
CLUSTER_NAME = "kafka-cluster"


class _Word(IntEnum):
    """A number of the protocol that has a name; numbers without one are UNKNOWN, which is 0."""

    @property
    def title(self) -> str:
        """In camel case, as znodes have it: `IdempotentWrite`."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @classmethod
    def _missing_(cls, value: object) -> _Word:
        return cls(0)


class AclOperation(_Word):
    """What is done."""

    UNKNOWN = 0
    ANY = 1
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


class ResourceType(_Word):
    """What it is done to."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Word):
    """How a name is meant; ANY and MATCH only in filters.

    MATCH finds every pattern that applies to the name: itself, `*`, and the prefixes of it.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermissionType(_Word):
    """Which way an ACL decides; ANY only in filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


# What can have ACLs.
RESOURCE_TYPES = tuple(one for one in ResourceType if one > ResourceType.ANY)

_ON_TOPIC = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
# What there is to do with a resource of each type, apart from ALL.
OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: _ON_TOPIC,
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


class Resource(NamedTuple):
    """One thing that is protected."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> Resource:
        """A topic."""
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def group(cls, group_id: str) -> Resource:
        """A group."""
        return cls(ResourceType.GROUP, group_id)

    @classmethod
    def transaction(cls, transactional_id: str) -> Resource:
        """A transactional id."""
        return cls(ResourceType.TRANSACTIONAL_ID, transactional_id)


CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


class ResourcePattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class AccessControlEntry(NamedTuple):
    """Who may, or may not, do what from where."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType


class AclBinding(NamedTuple):
    """One ACL."""

    pattern: ResourcePattern
    entry: AccessControlEntry


class ResourcePatternFilter(NamedTuple):
    """Finds patterns; a name of None finds any name."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY

    def matches(self, pattern: ResourcePattern) -> bool:
        """Whether it finds the pattern."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD_RESOURCE)


class AccessControlEntryFilter(NamedTuple):
    """Finds entries; None finds any principal or host."""

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether it finds the entry."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )


class AclBindingFilter(NamedTuple):
    """Finds ACLs; the default finds all."""

    pattern: ResourcePatternFilter = ResourcePatternFilter()
    entry: AccessControlEntryFilter = AccessControlEntryFilter()

    def matches(self, binding: AclBinding) -> bool:
        """Whether it finds the ACL."""
        return self.pattern.matches(binding.pattern) and self.entry.matches(binding.entry)
