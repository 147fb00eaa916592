"""Decides who may do what from the ACLs in memory, as Kafka's AclAuthorizer does.

    a super user is allowed everything
    no ACL applies to the resource at all: `allow.everyone.if.no.acl.found`
    an ACL denies it: denied, whatever else allows it
    an ACL allows it, or allows an operation that implies it: allowed
    otherwise: denied

The ACLs that apply to a resource are those of its name, those of `*`, and those of every prefix of the name.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Iterator, Mapping

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.common.acls import (
    WILDCARD_HOST,
    WILDCARD_PRINCIPAL,
    WILDCARD_RESOURCE,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    Resource,
    ResourcePattern,
    ResourceType,
)

logger = logging.getLogger(__name__)

# Clients choose the names that verdicts are kept for, so their number is bounded.
MAX_VERDICTS = 50_000

# Being allowed one of these implies the key; a denial implies nothing.
_ALSO_ALLOWED_BY: dict[AclOperation, tuple[AclOperation, ...]] = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}

Entries = tuple[AccessControlEntry, ...]
_VerdictKey = tuple[str, str, AclOperation, ResourceType, str]


class AclAuthorizer:
    """Holds every ACL of the cluster, and the verdicts they led to. Owned by the broker's event loop.

    A verdict is kept until any ACL changes, so that asking again costs one dictionary lookup.
    """

    def __init__(
        self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._acls: dict[ResourcePattern, Entries] = {}
        # Of the prefixed patterns, so that a name is cut only where a prefix may end.
        self._prefix_lengths: dict[ResourceType, tuple[int, ...]] = {}
        self._verdicts: dict[_VerdictKey, bool] = {}

    def allows(self, principal: str, host: str, operation: AclOperation, resource: Resource) -> bool:
        """Whether the principal may do that to the resource from the host."""
        resource_type, name = resource
        key = (principal, host, operation, resource_type, name)
        verdict = self._verdicts.get(key)
        return self._decide_and_keep(key) if verdict is None else verdict

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the principal may do that to at least one resource of the type, even one yet to be made."""
        if principal in self._super_users:
            return True
        granted = _Grants(self._acls, principal, host, operation, resource_type)
        if WILDCARD_RESOURCE in granted.denied_names:
            return False
        return self._allow_everyone_if_no_acl_found or granted.leave_something()

    def acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """The ACLs that a filter finds."""
        return [
            AclBinding(pattern, entry)
            for pattern, entries in self._acls.items()
            if wanted.pattern.matches(pattern)
            for entry in entries
            if wanted.entry.matches(entry)
        ]

    def update(self, pattern: ResourcePattern, entries: Entries) -> None:
        """Replace the ACLs of one pattern; no entries remove it."""
        if entries:
            self._acls[pattern] = entries
        else:
            self._acls.pop(pattern, None)
        self._changed()

    def replace_all(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        """Replace every ACL."""
        self._acls = {pattern: entries for pattern, entries in acls.items() if entries}
        self._changed()

    def _changed(self) -> None:
        lengths: dict[ResourceType, set[int]] = {}
        for pattern in self._acls:
            if pattern.pattern_type is PatternType.PREFIXED:
                lengths.setdefault(pattern.resource_type, set()).add(len(pattern.name))
        self._prefix_lengths = {kind: tuple(sorted(found)) for kind, found in lengths.items()}
        self._verdicts.clear()

    def _decide_and_keep(self, key: _VerdictKey) -> bool:
        principal, host, operation, resource_type, name = key
        verdict = self._decide(principal, host, operation, Resource(resource_type, name))
        if len(self._verdicts) >= MAX_VERDICTS:
            self._verdicts.clear()
        self._verdicts[key] = verdict
        if not verdict:
            logger.debug(
                "denied: %s, operation %s, on %s %s, from %s",
                principal,
                operation.title,
                resource_type.title,
                name,
                host,
            )
        return verdict

    def _decide(self, principal: str, host: str, operation: AclOperation, resource: Resource) -> bool:
        if principal in self._super_users:
            return True
        entries = list(self._applying_to(resource))
        if not entries:
            return self._allow_everyone_if_no_acl_found
        about_us = [entry for entry in entries if _is_about(entry, principal, host)]
        denied = {one.operation for one in about_us if one.permission_type is AclPermissionType.DENY}
        allowed = {one.operation for one in about_us if one.permission_type is AclPermissionType.ALLOW}
        if operation in denied or AclOperation.ALL in denied:
            return False
        implied_by = _ALSO_ALLOWED_BY.get(operation, ())
        return not allowed.isdisjoint((operation, AclOperation.ALL, *implied_by))

    def _applying_to(self, resource: Resource) -> Iterator[AccessControlEntry]:
        kind, name = resource
        acls = self._acls
        yield from acls.get(ResourcePattern(kind, name), ())
        if name != WILDCARD_RESOURCE:
            yield from acls.get(ResourcePattern(kind, WILDCARD_RESOURCE), ())
        for length in self._prefix_lengths.get(kind, ()):
            if length > len(name):
                break
            yield from acls.get(ResourcePattern(kind, name[:length], PatternType.PREFIXED), ())


class _Grants:
    """What the ACLs grant and deny a principal for one operation on one type of resource."""

    def __init__(
        self,
        acls: Mapping[ResourcePattern, Entries],
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> None:
        self.denied_names: set[str] = set()
        self._denied_prefixes: set[str] = set()
        self._allowed: list[ResourcePattern] = []
        for pattern, entries in acls.items():
            if pattern.resource_type is not resource_type:
                continue
            for entry in entries:
                if entry.operation in (operation, AclOperation.ALL) and _is_about(entry, principal, host):
                    self._add(pattern, entry.permission_type)

    def _add(self, pattern: ResourcePattern, permission_type: AclPermissionType) -> None:
        if permission_type is AclPermissionType.ALLOW:
            self._allowed.append(pattern)
        elif permission_type is AclPermissionType.DENY:
            is_prefix = pattern.pattern_type is PatternType.PREFIXED
            (self._denied_prefixes if is_prefix else self.denied_names).add(pattern.name)

    def leave_something(self) -> bool:
        """Whether something is granted that no denial takes away entirely."""
        return any(self._is_left(pattern) for pattern in self._allowed)

    def _is_left(self, pattern: ResourcePattern) -> bool:
        if pattern.pattern_type is PatternType.LITERAL:
            if pattern.name == WILDCARD_RESOURCE:
                return True  # denied prefixes and names never cover every possible name
            if pattern.name in self.denied_names:
                return False
        return not any(pattern.name.startswith(prefix) for prefix in self._denied_prefixes)


def _is_about(entry: AccessControlEntry, principal: str, host: str) -> bool:
    return entry.principal in (principal, WILDCARD_PRINCIPAL) and (
        entry.host in (host, WILDCARD_HOST) or canonical_host(entry.host) == host
    )


def canonical_host(host: str) -> str:
    """An address as the operating system prints it: Java writes ::1 as 0:0:0:0:0:0:0:1."""
    if ":" not in host:
        return host
    try:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host)).removeprefix(
            "::ffff:"
        )
    except OSError:
        return host


def parse_super_users(text: str) -> frozenset[str]:
    """The principals of `super.users`, which are separated by semicolons since names may have commas."""
    return frozenset(name.strip() for name in text.split(";") if name.strip())


def configured_authorizer(config: BrokerConfig) -> AclAuthorizer | None:
    """The authorizer that `authorizer.class.name` asks for; None allows everything.

    Both of Kafka's class names mean this one: they decide alike.
    """
    if not config.authorizer_class_name:
        return None
    return AclAuthorizer(
        parse_super_users(config.super_users),
        allow_everyone_if_no_acl_found=config.allow_everyone_if_no_acl_found,
    )
