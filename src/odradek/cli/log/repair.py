"""`odradek log repair`: cut a corrupt partition at its first bad batch, and keep what is cut away."""

from __future__ import annotations

import os

import click

from odradek.cli.options import UsageProblem, check_directory
from odradek.log.directories.log_directory import LogDirectory
from odradek.log.files.file_system import FileSystem
from odradek.log.offline.read_only import is_partition
from odradek.log.offline.repair import RepairPlan, apply_repair, plan_repair


@click.command("repair")
@click.argument("directory")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def command(directory: str, yes: bool) -> None:
    """Cut the partition in DIRECTORY at its first bad batch, if it has one, and rebuild damaged indexes.

    Nothing is lost: what is cut away goes into files beside it, *.log.from-N.cut. Records behind the cut are
    no longer served; if another replica has them, remove the directory instead, so that it is copied again.
    The broker must be stopped.
    """
    check_directory(directory)
    if not is_partition(directory):
        raise UsageProblem(
            f"{directory}: no partition's directory; repair one at a time, e.g. {directory}/orders-0"
        )
    log_directory = LogDirectory(os.path.dirname(os.path.abspath(directory)), FileSystem())
    log_directory.lock()
    try:
        _repair(directory, yes)
    finally:
        log_directory.unlock()


def _repair(directory: str, yes: bool) -> None:
    plan = plan_repair(directory)
    for finding in plan.findings:
        click.echo(str(finding))
    if not plan.has_work:
        click.echo(f"{directory}: nothing to repair")
        return
    for step in _steps(plan):
        click.echo(f"  - {step}")
    if not yes:
        click.confirm("Do this?", abort=True)
    repaired = apply_repair(plan)
    for path in repaired.saved:
        click.echo(f"kept: {path}")
    click.echo(f"repaired: {directory} ends at offset {repaired.log_end_offset}")


def _steps(plan: RepairPlan) -> list[str]:
    steps = []
    if plan.cut is not None:
        name = f"{plan.cut.base_offset:020d}.log"
        steps.append(f"set aside {plan.bytes_cut} bytes of log, from byte {plan.cut.position} of {name} on")
    if plan.rebuilt:
        steps.append(f"rebuild the indexes of {len(plan.rebuilt)} segments")
    if plan.rewrites_epochs:
        steps.append("rebuild the leader-epoch-checkpoint from the batches")
    if plan.removed_snapshots:
        steps.append(f"remove {len(plan.removed_snapshots)} snapshots of producer state")
    return steps
