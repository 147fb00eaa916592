"""Offsets of a group: for each partition the committed offset, log end offset, lag and consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.cli.groups.columns import GroupColumn, GroupTable, column_lines
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.groups import GroupDescription, MemberDescription
    from odradek.client.committed_offsets import OffsetAndMetadata

_FIRST = [
    GroupColumn("GROUP", "group", grows=True),
    GroupColumn("TOPIC", "topic", grows=True),
    GroupColumn("PARTITION", "partition", 10),
]
_EPOCH = [GroupColumn("LEADER-EPOCH", "leader_epoch")]
_THEN = [
    GroupColumn("CURRENT-OFFSET", "current_offset"),
    GroupColumn("LOG-END-OFFSET", "log_end_offset"),
    GroupColumn("LAG", "lag"),
    GroupColumn("CONSUMER-ID", "consumer_id", grows=True),
    GroupColumn("HOST", "host", grows=True),
    GroupColumn("CLIENT-ID", "client_id", 0),
]


def offset_view(admin: Admin, group: GroupDescription, verbose: bool) -> GroupTable:
    """One row for each partition that is committed or assigned."""
    committed = committed_offsets(admin, group.group_id)
    readers = {partition: member for member in group.members for partition in member.assignment}
    partitions = sorted({*committed, *readers})
    ends = log_end_offsets(admin, partitions)
    rows = [
        _row(group, partition, committed.get(partition), ends.get(partition), readers.get(partition))
        for partition in partitions
    ]
    lines = column_lines([*_FIRST, *(_EPOCH if verbose else []), *_THEN], rows) if rows else []
    if not verbose:
        for row in rows:
            del row["leader_epoch"]
    return GroupTable("offsets", rows, lines)


def committed_offsets(admin: Admin, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """The committed offsets of a group; partitions without authorization are left out."""
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    found = admin.list_group_offsets(group)
    return {partition: one for partition, one in found.items() if not isinstance(one, BrokerError)}


def log_end_offsets(admin: Admin, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The log end offsets; partitions of deleted topics, or without a leader, are left out."""
    from odradek.client.admin.offsets import OffsetSpec  # noqa: PLC0415
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    found = admin.list_offsets(dict.fromkeys(partitions, int(OffsetSpec.LATEST)))
    return {partition: one.offset for partition, one in found.items() if not isinstance(one, BrokerError)}


def _row(
    group: GroupDescription,
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    end: int | None,
    reader: MemberDescription | None,
) -> dict[str, Any]:
    offset = committed.offset if committed is not None else None
    epoch = committed.leader_epoch if committed is not None else -1
    return {
        "group": group.group_id,
        "topic": partition.topic,
        "partition": partition.partition,
        "leader_epoch": epoch if epoch >= 0 else None,
        "current_offset": offset,
        "log_end_offset": end,
        "lag": end - offset if end is not None and offset is not None else None,
        "consumer_id": reader.member_id if reader is not None else None,
        "host": reader.host if reader is not None else None,
        "client_id": reader.client_id if reader is not None else None,
    }
