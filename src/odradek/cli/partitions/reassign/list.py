"""`odradek partitions reassign list`: the reassignments under way."""

from __future__ import annotations

from collections.abc import Sequence

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows


@click.command("list")
@bootstrap_option
@output_option
def command(bootstrap: str, output: str | None) -> None:
    """List the reassignments under way, with the replicas that are added and removed."""
    with admin_client(bootstrap) as admin:
        found = sorted(admin.list_partition_reassignments().items(), key=lambda item: item[0])
    lines = ["Current partition reassignments:"] if found else ["No partition reassignments found."]
    lines += [
        f"{partition}: replicas: {_ids(one.replicas)}."
        + (f" adding: {_ids(one.adding_replicas)}." if one.adding_replicas else "")
        + (f" removing: {_ids(one.removing_replicas)}." if one.removing_replicas else "")
        for partition, one in found
    ]
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": one.replicas,
            "adding": one.adding_replicas,
            "removing": one.removing_replicas,
        }
        for partition, one in found
    ]
    print_rows(output, rows, lines, title="reassignments")


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
