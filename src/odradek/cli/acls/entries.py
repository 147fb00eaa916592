"""Parses the flags of `add` and `remove` into access control entries for each resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import click

from odradek.cli.acls.resources import cluster_resource, of_type
from odradek.cli.options import UsageProblem
from odradek.common.acls import (
    OPERATIONS,
    WILDCARD_HOST,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    ResourcePatternFilter,
    ResourceType,
)

EntriesByResource = dict[ResourcePatternFilter, list[AccessControlEntry]]

_BY_NAME = {one.title.lower(): one for one in AclOperation if one > AclOperation.ANY}
_PRODUCER = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTION = (AclOperation.WRITE, AclOperation.DESCRIBE)
_CONSUMER = (AclOperation.READ, AclOperation.DESCRIBE)


class Who(NamedTuple):
    """Principals and the hosts they connect from."""

    allowed: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    denied: tuple[str, ...]
    denied_hosts: tuple[str, ...]

    def entries(self, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
        """One entry for each principal, host and operation."""
        wanted = list(operations)
        return [
            AccessControlEntry(principal, host, operation, permission)
            for principals, hosts, permission in (
                (self.allowed, self.allowed_hosts, AclPermissionType.ALLOW),
                (self.denied, self.denied_hosts, AclPermissionType.DENY),
            )
            for principal in principals
            for host in hosts or (WILDCARD_HOST,)
            for operation in wanted
        ]


class Role(NamedTuple):
    """The roles of a principal, each of which implies a set of operations."""

    producer: bool
    consumer: bool
    idempotent: bool


def entry_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `parse_entries` takes."""
    options = (
        click.option(
            "--allow-principal",
            multiple=True,
            metavar="TYPE:NAME",
            help="The principal to allow: User:alice, User:*.",
        ),
        click.option(
            "--deny-principal",
            multiple=True,
            metavar="TYPE:NAME",
            help="The principal to deny; overrides allow.",
        ),
        click.option(
            "--allow-host", multiple=True, metavar="IP", help="Allow from this host only; * by default."
        ),
        click.option(
            "--deny-host", multiple=True, metavar="IP", help="Deny from this host only; * by default."
        ),
        click.option(
            "--operation",
            "operations",
            multiple=True,
            metavar="NAME",
            help="Read, Write, Describe, Create, Delete, Alter, AlterConfigs, ...; All by default.",
        ),
        click.option("--producer", is_flag=True, help="Write, Describe and Create on --topic."),
        click.option("--consumer", is_flag=True, help="Read and Describe on --topic, Read on --group."),
        click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def parse_entries(
    resources: list[ResourcePatternFilter],
    allow_principal: tuple[str, ...],
    deny_principal: tuple[str, ...],
    allow_host: tuple[str, ...],
    deny_host: tuple[str, ...],
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> EntriesByResource:
    """The entries of each resource; an empty list if no principal was given."""
    who = Who(allow_principal, allow_host, deny_principal, deny_host)
    role = Role(producer, consumer, idempotent)
    _check_who(who)
    if (operations or producer or consumer) and not (who.allowed or who.denied):
        # Otherwise `remove --operation Read` would remove every ACL of the resource.
        raise UsageProblem("no principal: give --allow-principal or --deny-principal as well")
    if idempotent and not producer:
        raise UsageProblem("--idempotent goes with --producer")
    if not producer and not consumer:
        return _by_operations(resources, who, [parse_operation(name) for name in operations or ("All",)])
    if operations or who.denied:
        raise UsageProblem(
            "--producer and --consumer go with --allow-principal, not with --operation or --deny-…"
        )
    return _by_role(resources, who, role)


def parse_operation(name: str) -> AclOperation:
    """DescribeConfigs, or describe_configs."""
    found = _BY_NAME.get(name.strip().replace("_", "").lower())
    if found is None:
        raise UsageProblem(
            f"--operation {name!r} is unknown; there are {', '.join(one.title for one in _BY_NAME.values())}"
        )
    return found


def _check_who(who: Who) -> None:
    for principal in (*who.allowed, *who.denied):
        kind, colon, name = principal.partition(":")
        if not kind or not colon or not name:
            raise UsageProblem(f"{principal!r} is no principal: it must be like User:alice")
    if (who.allowed_hosts and not who.allowed) or (who.denied_hosts and not who.denied):
        raise UsageProblem("a host goes with a principal: --allow-principal, --deny-principal")


def _by_operations(
    resources: list[ResourcePatternFilter], who: Who, operations: list[AclOperation]
) -> EntriesByResource:
    for resource in resources:
        known = (AclOperation.ALL, *OPERATIONS[resource.resource_type])
        if not set(operations) <= set(known):
            raise UsageProblem(
                f"ResourceType {resource.resource_type.name} only supports operations "
                + ", ".join(one.name for one in known)
            )
    return {resource: who.entries(operations) for resource in resources}


def _by_role(resources: list[ResourcePatternFilter], who: Who, role: Role) -> EntriesByResource:
    topics, groups = of_type(resources, ResourceType.TOPIC), of_type(resources, ResourceType.GROUP)
    transactional_ids = of_type(resources, ResourceType.TRANSACTIONAL_ID)
    _check_role(resources, role)
    wanted: dict[ResourcePatternFilter, list[AclOperation]] = {}
    if role.producer:
        _add(wanted, topics, _PRODUCER)
        _add(wanted, transactional_ids, _TRANSACTION)
    if role.idempotent:
        _add(wanted, [cluster_resource()], (AclOperation.IDEMPOTENT_WRITE,))
    if role.consumer:
        _add(wanted, topics, _CONSUMER)
        _add(wanted, groups, (AclOperation.READ,))
    return {resource: who.entries(dict.fromkeys(operations)) for resource, operations in wanted.items()}


def _check_role(resources: list[ResourcePatternFilter], role: Role) -> None:
    kinds = {one.resource_type for one in resources}
    if ResourceType.TOPIC not in kinds:
        raise UsageProblem("--producer and --consumer need a --topic")
    if role.consumer and ResourceType.GROUP not in kinds:
        raise UsageProblem("--consumer needs a --group beside the --topic")
    allowed = {ResourceType.TOPIC}
    allowed |= {ResourceType.TRANSACTIONAL_ID} if role.producer else set()
    allowed |= {ResourceType.GROUP} if role.consumer else set()
    if not kinds <= allowed:
        others = ", ".join(sorted(one.name for one in kinds - allowed))
        raise UsageProblem(f"the role does not need {others}: leave that out")


def _add(
    wanted: dict[ResourcePatternFilter, list[AclOperation]],
    resources: list[ResourcePatternFilter],
    operations: tuple[AclOperation, ...],
) -> None:
    for resource in resources:
        wanted.setdefault(resource, []).extend(operations)
