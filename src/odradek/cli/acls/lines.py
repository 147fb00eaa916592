"""ACLs as kafka-acls prints them, and as rows for tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from odradek.common.acls import (
    AccessControlEntry,
    AclBinding,
    ResourcePattern,
    ResourcePatternFilter,
)


def pattern_words(pattern: ResourcePattern | ResourcePatternFilter) -> str:
    """As Java prints one."""
    return (
        f"ResourcePattern(resourceType={pattern.resource_type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def entry_words(entry: AccessControlEntry) -> str:
    """As Java prints one."""
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission_type.name})"
    )


def by_pattern(bindings: Iterable[AclBinding]) -> dict[ResourcePattern, list[AccessControlEntry]]:
    """The entries of each pattern, in order."""
    grouped: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for pattern, entry in sorted(bindings):
        grouped.setdefault(pattern, []).append(entry)
    return grouped


def current_lines(bindings: Iterable[AclBinding]) -> Iterator[str]:
    """What `list` prints."""
    for pattern, entries in by_pattern(bindings).items():
        yield f"Current ACLs for resource `{pattern_words(pattern)}`:"
        yield from (f"\t{entry_words(entry)}" for entry in entries)
        yield ""


def changed_lines(verb: str, bindings: Iterable[AclBinding]) -> Iterator[str]:
    """What `add` and `remove` print: kafka-acls has a space before the first entry."""
    for pattern, entries in by_pattern(bindings).items():
        yield f"{verb} ACLs for resource `{pattern_words(pattern)}`: "
        yield " " + "\n".join(f"\t{entry_words(entry)}" for entry in entries)
        yield ""


def row(binding: AclBinding) -> dict[str, Any]:
    """One ACL for tables and JSON."""
    pattern, entry = binding
    return {
        "resource_type": pattern.resource_type.name,
        "name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission_type": entry.permission_type.name,
    }
