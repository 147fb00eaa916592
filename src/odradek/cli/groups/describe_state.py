"""The state of a group: one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.groups.columns import GroupColumn, GroupTable, column_lines

if TYPE_CHECKING:
    from odradek.client.admin.groups import GroupDescription

_FIRST = [
    GroupColumn("GROUP", "group", grows=True),
    GroupColumn("COORDINATOR (ID)", "coordinator", 25, grows=True),
    GroupColumn("ASSIGNMENT-STRATEGY", "assignor", 20, grows=True),
    GroupColumn("STATE", "state", 20),
]
_EPOCHS = [
    GroupColumn("GROUP-EPOCH", "group_epoch"),
    GroupColumn("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25),
]
_LAST = [GroupColumn("#MEMBERS", "members", 0)]


def state_view(group: GroupDescription, verbose: bool) -> GroupTable:
    """Coordinator, assignor, state, and how many members there are."""
    node = group.coordinator
    epochs = {
        "group_epoch": group.group_epoch,
        "target_assignment_epoch": group.target_assignment_epoch,
    }
    row = {
        "group": group.group_id,
        "coordinator": f"{node.host}:{node.port}",
        "coordinator_id": node.node_id,
        "assignor": group.assignor or None,
        "state": str(group.state),
        "type": str(group.group_type),
        **(epochs if verbose else {}),
        "members": len(group.members),
    }
    cells = {**row, "coordinator": f"{node.host}:{node.port}  ({node.node_id})"}
    return GroupTable("state", [row], column_lines([*_FIRST, *(_EPOCHS if verbose else []), *_LAST], [cells]))
