"""The members of a group, their hosts and assignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odradek.cli.groups.columns import GroupColumn, GroupTable, column_lines
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.groups import GroupDescription, MemberDescription

_FIRST = [GroupColumn("GROUP", "group", grows=True), GroupColumn("CONSUMER-ID", "consumer_id", grows=True)]
_INSTANCE = [GroupColumn("GROUP-INSTANCE-ID", "instance", 17, grows=True)]
_THEN = [
    GroupColumn("HOST", "host", grows=True),
    GroupColumn("CLIENT-ID", "client_id", grows=True),
    GroupColumn("#PARTITIONS", "partitions"),
]
_VERBOSE = [
    GroupColumn("CURRENT-EPOCH", "current_epoch"),
    GroupColumn("CURRENT-ASSIGNMENT", "current", 20, grows=True),
    GroupColumn("TARGET-EPOCH", "target_epoch"),
    GroupColumn("TARGET-ASSIGNMENT", "target", 20, grows=True),
]


def member_view(group: GroupDescription, verbose: bool) -> GroupTable:
    """One row for each member, those with most partitions first."""
    members = sorted(group.members, key=lambda member: (-len(member.assignment), member.member_id))
    has_instances = any(member.group_instance_id is not None for member in members)
    columns = [*_FIRST, *(_INSTANCE if has_instances else []), *_THEN, *(_VERBOSE if verbose else [])]
    lines = column_lines(columns, [_cells(group, member) for member in members])
    return GroupTable("members", [_row(group, member, verbose) for member in members], lines)


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
