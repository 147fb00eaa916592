"""`odradek groups delete`: delete groups with their offsets."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.groups.group_names import groups_argument, groups_of_consumers, problems_of
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, to_json


@click.command("delete")
@groups_argument()
@click.option("--all-groups", is_flag=True, help="All groups that list shows.")
@bootstrap_option
@output_option
def command(groups: tuple[str, ...], all_groups: bool, bootstrap: str, output: str | None) -> None:
    """Delete empty groups with their offsets.

    odradek groups delete billing shipping
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    if bool(groups) == all_groups:
        raise UsageProblem("give groups, or --all-groups; `odradek groups list` shows all")
    with admin_client(bootstrap) as admin:
        outcomes = admin.delete_groups(groups or groups_of_consumers(admin))
        refused = [(name, one) for name, one in outcomes.items() if isinstance(one, BrokerError)]
        deleted = [name for name, one in outcomes.items() if one is None]
        _print_deleted(output, deleted, is_all=not refused)
        if refused:
            raise Failed(problems_of(admin, refused))


def _print_deleted(output: str | None, deleted: list[str], *, is_all: bool) -> None:
    names = ", ".join(f"'{name}'" for name in deleted)
    if output == "json":
        for name in deleted:
            click.echo(to_json({"group": name, "deleted": True}))
    elif is_all:
        click.echo(f"Deletion of requested consumer groups ({names}) was successful.")
    elif deleted:
        click.echo(f"These consumer groups were deleted successfully: {names}")
