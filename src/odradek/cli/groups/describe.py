"""`odradek groups describe`: the offsets, lag, members and state of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.groups.describe_members import member_view
from odradek.cli.groups.describe_offsets import offset_view
from odradek.cli.groups.describe_state import state_view
from odradek.cli.groups.group_names import groups_argument, groups_of_consumers, problems_of
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.groups import GroupDescription

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@click.command("describe")
@groups_argument()
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option("--offsets", "shows_offsets", is_flag=True, help="Offsets and lag; the default.")
@click.option("--members", "shows_members", is_flag=True, help="Members, and how many partitions each has.")
@click.option("--state", "shows_state", is_flag=True, help="Coordinator, assignor and state.")
@click.option("--verbose", is_flag=True, help="Also leader epochs; assignments; epochs of the group.")
@bootstrap_option
@output_option
def command(
    groups: tuple[str, ...],
    all_groups: bool,
    shows_offsets: bool,
    shows_members: bool,
    shows_state: bool,
    verbose: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """Describe groups: for each partition the committed offset, the end of the log, the lag and the reader.

    \b
    odradek groups describe billing
    odradek groups describe billing --members
    odradek groups describe --all-groups --state
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    if sum((shows_offsets, shows_members, shows_state)) > 1:
        raise UsageProblem("--offsets, --members and --state exclude each other")
    if bool(groups) == all_groups:
        raise UsageProblem("give groups, or --all-groups; `odradek groups list` shows all")
    with admin_client(bootstrap) as admin:
        wanted = groups or groups_of_consumers(admin)
        outcomes = admin.describe_groups(wanted)
        refused = [(name, one) for name, one in outcomes.items() if isinstance(one, BrokerError)]
        for described in outcomes.values():
            if isinstance(described, BrokerError):
                continue
            _print_state(described)
            if shows_members:
                view = member_view(described, verbose)
            elif shows_state:
                view = state_view(described, verbose)
            else:
                view = offset_view(admin, described, verbose)
            print_rows(output, view.rows, view.lines, view.title)
        if refused:
            raise Failed(problems_of(admin, refused))


def _print_state(described: GroupDescription) -> None:
    if described.state == "Empty":
        click.echo(f"\nConsumer group '{described.group_id}' has no active members.", err=True)
    elif described.state in _REBALANCING:
        click.echo(f"\nWarning: Consumer group '{described.group_id}' is rebalancing.", err=True)
