"""`odradek transactions describe-producers`: the active producers of a partition."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.cli.transactions.table import table_lines
from odradek.client.admin.base import require
from odradek.common.ids import TopicPartition

_TITLES = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)


@click.command("describe-producers")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(min=0), help="The partition.")
@bootstrap_option
@output_option
def command(topic: str, partition: int, bootstrap: str, output: str | None) -> None:
    """Describe the active producers of a partition, and their open transactions.

    odradek transactions describe-producers --topic orders --partition 0
    """
    place = TopicPartition(topic, partition)
    with admin_client(bootstrap) as admin:
        found = require(admin.describe_producers([place])[place])
    rows = [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "latest_coordinator_epoch": -1 if one.coordinator_epoch is None else one.coordinator_epoch,
            "last_sequence": one.last_sequence,
            "last_timestamp_ms": one.last_timestamp_ms,
            "current_transaction_start_offset": one.current_transaction_start_offset,
        }
        for one in found
    ]
    print_rows(output, rows, table_lines(_TITLES, [list(row.values()) for row in rows]), title="producers")
