"""`odradek transactions find-hanging`: transactions open in a partition that no coordinator will end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.cli.transactions.table import table_lines
from odradek.client.admin.base import require
from odradek.client.admin.producers import ProducerState
from odradek.client.admin.transactions import TransactionDescription
from odradek.client.broker_errors import TransactionalIdNotFound
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_TITLES = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
_DEFAULT_TIMEOUT_MINUTES = 15
_MINUTE_MS = 60_000


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition."""

    partition: TopicPartition
    producer: ProducerState


@click.command("find-hanging")
@click.option("--broker-id", type=int, help="Only partitions that this broker leads.")
@click.option("--topic", help="Only this topic.")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition of --topic.")
@click.option(
    "--max-transaction-timeout",
    "timeout_minutes",
    type=click.IntRange(min=0),
    default=_DEFAULT_TIMEOUT_MINUTES,
    help=f"Minutes after which a transaction can hang; {_DEFAULT_TIMEOUT_MINUTES} by default.",
)
@bootstrap_option
@output_option
def command(
    broker_id: int | None,
    topic: str | None,
    partition: int | None,
    timeout_minutes: int,
    bootstrap: str,
    output: str | None,
) -> None:
    """Find transactions that hold back readers of committed data and that no coordinator will end.

    odradek transactions find-hanging --topic orders
    """
    if partition is not None and topic is None:
        raise UsageProblem("--partition needs --topic")
    if broker_id is None and topic is None:
        raise UsageProblem("give --topic or --broker-id")
    now_ms = time.time_ns() // 1_000_000
    with admin_client(bootstrap) as admin:
        partitions = list(_partitions(admin, broker_id, topic, partition))
        producers = {
            place: require(outcome) for place, outcome in admin.describe_producers(partitions).items()
        }
        candidates = list(open_for(producers, now_ms - timeout_minutes * _MINUTE_MS))
        described = _described(admin, candidates)
    found = [one for one in candidates if is_hanging(one, described)]
    rows = [_row(one, now_ms) for one in found]
    print_rows(output, rows, table_lines(_TITLES, [list(row.values()) for row in rows]), title="transactions")


def _partitions(
    admin: Admin, broker_id: int | None, topic: str | None, partition: int | None
) -> Iterator[TopicPartition]:
    names = [topic] if topic is not None else [one.name for one in admin.list_topics(include_internal=True)]
    for outcome in admin.describe_topics(names).values():
        description = require(outcome)
        for one in description.partitions:
            if broker_id in (None, one.leader) and partition in (None, one.partition):
                yield TopicPartition(description.name, one.partition)


def open_for(
    producers: Mapping[TopicPartition, Iterable[ProducerState]], latest_ms: int
) -> Iterator[OpenTransaction]:
    """The open transactions whose last record is not younger than `latest_ms`."""
    for partition, states in producers.items():
        for state in states:
            is_open = state.current_transaction_start_offset is not None
            if is_open and state.last_timestamp_ms <= latest_ms:
                yield OpenTransaction(partition, state)


def _described(admin: Admin, candidates: list[OpenTransaction]) -> dict[int, TransactionDescription]:
    """What coordinators know of the producers of these transactions, by producer id."""
    wanted = {one.producer.producer_id for one in candidates}
    if not wanted:
        return {}
    names = [one.transactional_id for one in admin.list_transactions(producer_ids=sorted(wanted))]
    outcomes = admin.describe_transactions(names).values()
    found = [require(one) for one in outcomes if not isinstance(one, TransactionalIdNotFound)]
    return {one.producer_id: one for one in found}


def is_hanging(one: OpenTransaction, described: Mapping[int, TransactionDescription]) -> bool:
    """Whether the coordinator knows nothing of the partition, so that it will never write a marker there."""
    description = described.get(one.producer.producer_id)
    return description is None or one.partition not in description.partitions


def _row(one: OpenTransaction, now_ms: int) -> dict[str, object]:
    producer = one.producer
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": -1 if producer.coordinator_epoch is None else producer.coordinator_epoch,
        "start_offset": producer.current_transaction_start_offset,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "duration_min": (now_ms - producer.last_timestamp_ms) // _MINUTE_MS,
    }
