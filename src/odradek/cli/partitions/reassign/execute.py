"""`odradek partitions reassign execute`: start the reassignments of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done
from odradek.cli.partitions.reassign.current_state import check_brokers, log_dirs_of, replicas_of
from odradek.cli.partitions.reassign.log_dir_moves import start_moves
from odradek.cli.partitions.reassign.plan import Plan, format_plan, plan_option, read_plan
from odradek.cli.partitions.reassign.throttles import moves, set_log_dir_throttle, set_throttle

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_EXISTING = (
    "reassignments are under way (`odradek partitions reassign list`); --additional starts this plan beside "
    "them, or changes the throttle of the same plan"
)
_WARNING = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)


@click.command("execute")
@plan_option
@click.option("--throttle", type=click.IntRange(min=0), metavar="BYTES/S", help="Limit of the replication.")
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=click.IntRange(min=0),
    metavar="BYTES/S",
    help="Limit of moves between the directories of one broker.",
)
@click.option("--additional", is_flag=True, help="Even if other reassignments are under way.")
@click.option(
    "--disallow-replication-factor-change", is_flag=True, help="Refuse a plan with more or fewer replicas."
)
@click.option("--timeout", "timeout_ms", type=int, default=10_000, help="ms to wait for moves to begin.")
@bootstrap_option
@output_option
def command(
    plan_path: Path,
    throttle: int | None,
    replica_alter_log_dirs_throttle: int | None,
    additional: bool,
    disallow_replication_factor_change: bool,
    timeout_ms: int,
    bootstrap: str,
    output: str | None,
) -> None:
    """Start a plan, and print the present replicas, to go back to them.

    odradek partitions reassign execute --reassignment-json-file plan.json --throttle 50000000
    """
    plan = read_plan(plan_path)
    lines: list[str] = []
    with admin_client(bootstrap) as admin:
        under_way = admin.list_partition_reassignments()
        if under_way and not additional:
            raise Failed(_EXISTING)
        check_brokers(admin, plan)
        current = replicas_of(admin, plan.replicas)
        rollback = format_plan(current, log_dirs_of(admin, {one.topic for one in current}))
        lines += [
            "Current partition replica assignment",
            "",
            rollback,
            "",
            "Save this to use as the --reassignment-json-file option during rollback",
        ]
        if throttle is not None or replica_alter_log_dirs_throttle is not None:
            lines.append(_WARNING)
        if throttle is not None:
            set_throttle(admin, moves(under_way, current, plan.replicas), throttle)
            lines.append(f"The inter-broker throttle limit was set to {throttle} B/s")
        if replica_alter_log_dirs_throttle is not None:
            brokers = {replica.broker_id for replica in plan.log_dirs}
            set_log_dir_throttle(admin, brokers, replica_alter_log_dirs_throttle)
            lines.append(
                f"The replica-alter-dir throttle limit was set to {replica_alter_log_dirs_throttle} B/s"
            )
        lines += _start(admin, plan, disallow_replication_factor_change)
        lines += start_moves(admin, plan.log_dirs, timeout_ms)
    row = {"started": [str(one) for one in sorted(plan.replicas)], "rollback": rollback}
    print_done(output, row, "\n".join(lines))


def _start(admin: Admin, plan: Plan, keeps_factor: bool) -> list[str]:
    outcomes = admin.alter_partition_reassignments(
        plan.replicas, allow_replication_factor_change=not keeps_factor
    )
    errors = [f"{one}: {outcome}" for one, outcome in sorted(outcomes.items()) if outcome is not None]
    if errors:
        raise Failed("\n".join(["Error reassigning partition(s):", *errors]))
    partitions = ",".join(str(one) for one in sorted(plan.replicas))
    plural = "" if len(plan.replicas) == 1 else "s"
    return [f"Successfully started partition reassignment{plural} for {partitions}"]
