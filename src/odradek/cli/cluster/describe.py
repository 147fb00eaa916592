"""`odradek cluster describe`: the brokers and the controller."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows

_WIDTHS = "{:<10} {:<{host}} {:<10} {:<{rack}} {:<10} {}"


@click.command("describe")
@click.option("--include-fenced-brokers", is_flag=True, help="Also list fenced brokers.")
@bootstrap_option
@output_option
def command(include_fenced_brokers: bool, bootstrap: str, output: str | None) -> None:
    """List the brokers with their addresses, racks and states."""
    with admin_client(bootstrap) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=include_fenced_brokers)
    rows = [
        {
            "id": broker.broker_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "state": "fenced" if broker.is_fenced else "unfenced",
            "controller": broker.broker_id == cluster.controller_id,
        }
        for broker in cluster.brokers
    ]
    widths = {
        "host": max([len("HOST"), *(len(str(row["host"])) for row in rows)]),
        "rack": max([len("RACK"), *(len(_shown(row["rack"])) for row in rows)]),
    }
    cells = [["ID", "HOST", "PORT", "RACK", "STATE", "CONTROLLER"]]
    cells += [[_shown(value) for value in row.values()] for row in rows]
    lines = [_WIDTHS.format(*line, **widths) for line in cells]
    print_rows(output, rows, lines, title="brokers")


def _shown(value: object) -> str:
    """As kafka-cluster.sh writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "null" if value is None else str(value)
