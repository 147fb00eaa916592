"""`odradek cluster id`: the cluster id."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done


@click.command("id")
@bootstrap_option
@output_option
def command(bootstrap: str, output: str | None) -> None:
    """Print the id of the cluster."""
    with admin_client(bootstrap) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    print_done(output, {"cluster_id": cluster_id}, f"Cluster ID: {cluster_id}")
