"""`odradek groups list`: the names of all groups of consumers, with type and state where wanted."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.groups.columns import GroupColumn, column_lines
from odradek.cli.groups.group_names import is_of_consumers
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows

_WORD_WIDTH = 20


@click.command("list")
@click.option(
    "--state",
    "states",
    is_flag=False,
    flag_value="",
    metavar="[STATE,...]",
    help="Show the states, or only groups in these: stable, empty, preparingrebalance, ...",
)
@click.option(
    "--type",
    "types",
    is_flag=False,
    flag_value="",
    metavar="[TYPE,...]",
    help="Show the types, or only groups of these: classic, consumer.",
)
@click.option("--all", "is_all", is_flag=True, help="Also groups of other clients, such as Kafka Connect.")
@bootstrap_option
@output_option
def command(states: str | None, types: str | None, is_all: bool, bootstrap: str, output: str | None) -> None:
    """List groups.

    odradek groups list --state empty,stable
    """
    with admin_client(bootstrap) as admin:
        try:
            listed = admin.list_groups(states=_words(states), types=_words(types))
        except ValueError as error:
            raise UsageProblem(str(error)) from None
    rows = [
        {"group": one.group_id, "type": str(one.group_type), "state": str(one.state)}
        for one in listed
        if is_all or is_of_consumers(one)
    ]
    shown = [
        GroupColumn("GROUP", "group", grows=True, margin=10),
        *([GroupColumn("TYPE", "type", _WORD_WIDTH)] if types is not None else []),
        *([GroupColumn("STATE", "state", _WORD_WIDTH)] if states is not None else []),
    ]
    lines = [row["group"] for row in rows] if len(shown) == 1 else column_lines(shown, rows)[1:]
    print_rows(output, rows, lines, title="groups")


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
