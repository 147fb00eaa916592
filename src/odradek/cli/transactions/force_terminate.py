"""`odradek transactions force-terminate`: abort the open transaction of a transactional id."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done


@click.command("force-terminate")
@click.option("--transactional-id", required=True, metavar="ID", help="The transactional id.")
@bootstrap_option
@output_option
def command(transactional_id: str, bootstrap: str, output: str | None) -> None:
    """Abort the open transaction of a transactional id; its producer is fenced.

    odradek transactions force-terminate --transactional-id orders-writer
    """
    with admin_client(bootstrap) as admin:
        admin.force_terminate_transaction(transactional_id)
    print_done(
        output, {"transactional_id": transactional_id}, f"Terminated the transaction of {transactional_id}."
    )
