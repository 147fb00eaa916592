"""`odradek transactions abort`: abort a hanging transaction in one partition."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_done
from odradek.client.admin.base import require
from odradek.client.admin.producers import ProducerState
from odradek.common.ids import TopicPartition


@click.command("abort")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(min=0), help="The partition.")
@click.option("--start-offset", type=int, help="Where the transaction begins in the partition.")
@click.option("--producer-id", type=int, help="Instead of --start-offset: the producer id, with its epoch.")
@click.option("--producer-epoch", type=int, help="The epoch of --producer-id.")
@click.option("--coordinator-epoch", type=int, default=0, help="The epoch of the coordinator; 0 by default.")
@bootstrap_option
@output_option
def command(
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int,
    bootstrap: str,
    output: str | None,
) -> None:
    """Write an abort marker for a hanging transaction into a partition; see find-hanging.

    odradek transactions abort --topic orders --partition 0 --start-offset 1234
    """
    place = TopicPartition(topic, partition)
    if start_offset is None and (producer_id is None or producer_epoch is None):
        raise UsageProblem("give --start-offset, or --producer-id and --producer-epoch")
    with admin_client(bootstrap) as admin:
        if start_offset is not None:
            states = require(admin.describe_producers([place])[place])
            state = _open_at(states, place, start_offset)
            producer_id, producer_epoch = state.producer_id, state.producer_epoch
            coordinator_epoch = state.coordinator_epoch or 0
        assert producer_id is not None
        assert producer_epoch is not None
        admin.abort_transaction(place, producer_id, producer_epoch, coordinator_epoch)
    row = {"topic": topic, "partition": partition, "producer_id": producer_id, "epoch": producer_epoch}
    print_done(output, row, f"Aborted the transaction of producer {producer_id} in {place}.")


def _open_at(states: tuple[ProducerState, ...], place: TopicPartition, start_offset: int) -> ProducerState:
    for state in states:
        if state.current_transaction_start_offset == start_offset:
            return state
    raise Failed(f"no open transaction of {place} begins at offset {start_offset}")
