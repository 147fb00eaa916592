"""Parses the flags that select resources: `--topic`, `--group`, `--cluster` and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import complete_topic
from odradek.common.acls import CLUSTER_NAME, PatternType, ResourcePatternFilter, ResourceType

_CLUSTER = ResourcePatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
_NAMED = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "delegation_tokens": ResourceType.DELEGATION_TOKEN,
    "user_principals": ResourceType.USER,
}
_PATTERN_TYPES = ("any", "match", "literal", "prefixed")


def resource_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `parse_resources` takes."""
    options = (
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="TOPIC",
            help="A topic; '*' is every topic. Repeatable.",
            shell_complete=complete_topic,
        ),
        click.option(
            "--group", "groups", multiple=True, metavar="GROUP", help="A group; '*' is every group."
        ),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option(
            "--transactional-id",
            "transactional_ids",
            multiple=True,
            metavar="ID",
            help="A transactional id; '*' is every one.",
        ),
        click.option(
            "--delegation-token", "delegation_tokens", multiple=True, metavar="ID", help="A delegation token."
        ),
        click.option(
            "--user-principal",
            "user_principals",
            multiple=True,
            metavar="USER",
            help="A user, as a resource.",
        ),
        click.option(
            "--resource-pattern-type",
            "pattern_type",
            type=click.Choice(_PATTERN_TYPES, case_sensitive=False),
            default="literal",
            show_default=True,
            help="How names match. any and match are for list and remove; match finds all ACLs that apply.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def parse_resources(
    cluster: bool, pattern_type: str, **named: tuple[str, ...]
) -> list[ResourcePatternFilter]:
    """The selected resources, ordered by type."""
    kind = PatternType[pattern_type.upper()]
    found = [
        ResourcePatternFilter(resource_type, name.strip(), kind)
        for option, resource_type in _NAMED.items()
        for name in named[option]
    ]
    if cluster and kind is PatternType.PREFIXED:
        raise UsageProblem("--cluster has no names: leave out --resource-pattern-type prefixed")
    return [*found, _CLUSTER] if cluster else found


def require_resources(cluster: bool, pattern_type: str, flags: dict[str, Any]) -> list[ResourcePatternFilter]:
    """As `parse_resources`, but removes its options from `flags`; UsageProblem if there is no resource."""
    found = parse_resources(cluster, pattern_type, **{name: flags.pop(name) for name in _NAMED})
    if not found:
        raise UsageProblem("no resource: give --topic, --group, --transactional-id or --cluster")
    return found


def of_type(resources: list[ResourcePatternFilter], kind: ResourceType) -> list[ResourcePatternFilter]:
    """Those of one type."""
    return [one for one in resources if one.resource_type is kind]


def cluster_resource() -> ResourcePatternFilter:
    """The cluster, for flags that imply it."""
    return _CLUSTER
