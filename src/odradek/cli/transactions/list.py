"""`odradek transactions list`: list transactional ids."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.cli.transactions.table import table_lines

_TITLES = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")


@click.command("list")
@click.option(
    "--duration-filter",
    "duration_ms",
    type=int,
    metavar="MS",
    help="Only transactions that have been open for longer.",
)
@click.option(
    "--transactional-id-pattern",
    "pattern",
    metavar="REGEX",
    help="Only ids that this matches.",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    help="Only in this state: Ongoing. Repeatable.",
)
@bootstrap_option
@output_option
def command(
    duration_ms: int | None, pattern: str | None, states: tuple[str, ...], bootstrap: str, output: str | None
) -> None:
    """List transactional ids with their state.

    odradek transactions list --state Ongoing
    """
    with admin_client(bootstrap) as admin:
        found = admin.list_transactions(
            states=states,
            duration_ms=duration_ms if duration_ms is None or duration_ms >= 0 else None,
            transactional_id_pattern=pattern,
        )
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": one.coordinator_id,
            "producer_id": one.producer_id,
            "state": one.state,
        }
        for one in found
    ]
    lines = table_lines(_TITLES, [list(row.values()) for row in rows])
    print_rows(output, rows, lines, title="transactions")
