"""The members of a group, their hosts and assignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odradek.cli.groups.columns import Column, View, column_lines
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.groups import GroupDescription, MemberDescription

_FIRST = [Column("GROUP", "group", grows=True), Column("CONSUMER-ID", "consumer_id", grows=True)]
_INSTANCE = [Column("GROUP-INSTANCE-ID", "instance", 17, grows=True)]
_THEN = [
    Column("HOST", "host", grows=True),
    Column("CLIENT-ID", "client_id", grows=True),
    Column("#PARTITIONS", "partitions"),
]
_VERBOSE = [
    Column("CURRENT-EPOCH", "current_epoch"),
    Column("CURRENT-ASSIGNMENT", "current", 20, grows=True),
    Column("TARGET-EPOCH", "target_epoch"),
    Column("TARGET-ASSIGNMENT", "target", 20, grows=True),
]


def member_view(group: GroupDescription, verbose: bool) -> View:
    """One row for each member, those with most partitions first."""
    members = sorted(group.members, key=lambda member: (-len(member.assignment), member.member_id))
    has_instances = any(member.group_instance_id is not None for member in members)
    columns = [*_FIRST, *(_INSTANCE if has_instances else []), *_THEN, *(_VERBOSE if verbose else [])]
    lines = column_lines(columns, [_cells(group, member) for member in members])
    return View("members", [_row(group, member, verbose) for member in members], lines)


def _row(group: GroupDescription, member: MemberDescription, verbose: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": group.group_id,
        "consumer_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "partitions": len(member.assignment),
    }
    if verbose:
        row["current_epoch"] = member.member_epoch
        row["current_assignment"] = _listed(member.assignment)
        row["target_epoch"] = group.target_assignment_epoch
        row["target_assignment"] = _listed(member.target_assignment)
    return row


def _cells(group: GroupDescription, member: MemberDescription) -> dict[str, Any]:
    row = _row(group, member, verbose=True)
    row["instance"] = row["group_instance_id"] or ""
    row["current"] = _in_short(member.assignment)
    row["target"] = _in_short(member.target_assignment)
    return row


def _listed(partitions: Iterable[TopicPartition] | None) -> list[str] | None:
    return None if partitions is None else [f"{topic}:{number}" for topic, number in sorted(partitions)]


def _in_short(partitions: Iterable[TopicPartition] | None) -> str | None:
    """orders:0,1,2;payments:0"""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions or ()):
        topics.setdefault(topic, []).append(number)
    shown = (f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items())
    return ";".join(shown) or None
