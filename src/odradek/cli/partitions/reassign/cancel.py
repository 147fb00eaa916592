"""`odradek partitions reassign cancel`: back to the replicas before the reassignments of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done
from odradek.cli.partitions.reassign.log_dir_moves import move_states, start_moves
from odradek.cli.partitions.reassign.plan import Plan, plan_option, preserve_option, read_plan
from odradek.cli.partitions.reassign.throttles import clear_throttles
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.partitions import PartitionReassignment


@click.command("cancel")
@plan_option
@preserve_option
@click.option("--timeout", "timeout_ms", type=int, default=10_000, help="ms to wait for moves to begin.")
@bootstrap_option
@output_option
def command(
    plan_path: Path, preserve_throttles: bool, timeout_ms: int, bootstrap: str, output: str | None
) -> None:
    """Cancel those reassignments of a plan that are under way, and remove the throttles.

    A partition that goes to other replicas than the plan says is left alone: another plan has moved it. The
    throttles stay then.

    odradek partitions reassign cancel --reassignment-json-file plan.json
    """
    plan = read_plan(plan_path)
    with admin_client(bootstrap) as admin:
        under_way = admin.list_partition_reassignments(plan.replicas)
        active, others = split_by_plan(under_way, plan)
        outcomes = admin.alter_partition_reassignments(dict.fromkeys(active)) if active else {}
        errors = [f"{one}: {outcome}" for one, outcome in sorted(outcomes.items()) if outcome is not None]
        plural = "" if len(active) == 1 else "s"
        if errors:
            raise Failed("\n".join([f"Error cancelling partition reassignment{plural} for:", *errors]))
        names = ",".join(map(str, active))
        lines = [
            f"Successfully cancelled partition reassignment{plural} for: {names}"
            if active
            else "None of the specified partition reassignments are active."
        ]
        moving = {
            replica: state.current
            for replica, state in move_states(admin, plan.log_dirs).items()
            if state.future is not None and state.current is not None
        }
        if moving:
            lines += start_moves(admin, moving, timeout_ms)
        else:
            lines.append("None of the specified partition moves are active.")
        lines += [
            f"{one} is being reassigned to {','.join(map(str, under_way[one].target_replicas))}, "
            f"not to {','.join(map(str, plan.replicas[one]))} as the plan says: left as it is."
            for one in others
        ]
        if not preserve_throttles and not others:
            brokers = {broker for target in plan.replicas.values() for broker in target}
            lines += clear_throttles(admin, {one.topic for one in plan.replicas}, brokers)
    done = {"cancelled": [str(one) for one in active], "left": [str(one) for one in others]}
    print_done(output, done, "\n".join(lines))


def split_by_plan(
    under_way: Mapping[TopicPartition, PartitionReassignment], plan: Plan
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The partitions that go where the plan says, and those that go elsewhere."""
    as_planned = [one for one in under_way if set(under_way[one].target_replicas) == set(plan.replicas[one])]
    return sorted(as_planned), sorted(set(under_way) - set(as_planned))
