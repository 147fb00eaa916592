"""`odradek transactions describe`: the transaction of a transactional id."""

from __future__ import annotations

import time

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.cli.transactions.table import table_lines
from odradek.client.admin.base import require
from odradek.client.broker_errors import TransactionalIdNotFound

_TITLES = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)


@click.command("describe")
@click.option("--transactional-id", required=True, metavar="ID", help="The transactional id.")
@bootstrap_option
@output_option
def command(transactional_id: str, bootstrap: str, output: str | None) -> None:
    """Describe the transaction of a transactional id.

    odradek transactions describe --transactional-id orders-writer
    """
    with admin_client(bootstrap) as admin:
        outcome = admin.describe_transactions([transactional_id])[transactional_id]
        if isinstance(outcome, TransactionalIdNotFound):
            raise Failed(f"there is no transactional id {transactional_id!r}")
        found = require(outcome)
    start_ms = found.start_time_ms
    row = {
        "coordinator": found.coordinator_id,
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "timeout_ms": found.timeout_ms,
        "start_time_ms": start_ms,
        "duration_ms": None if start_ms is None else max(0, time.time_ns() // 1_000_000 - start_ms),
        "partitions": ",".join(str(partition) for partition in sorted(found.partitions)),
    }
    print_rows(output, [row], table_lines(_TITLES, [list(row.values())]), title="transactions")
