"""`odradek partitions reassign generate`: a plan that spreads the replicas of topics over brokers."""

from __future__ import annotations

import random
from pathlib import Path

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.offsets.partitions import parse_numbers
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.cli.partitions.reassign.current_state import log_dirs_of, replicas_of_topics
from odradek.cli.partitions.reassign.plan import Replicas, format_plan, parse_topics
from odradek.cli.topic_names import topics_argument
from odradek.cluster.topics.placement import BrokerLocation, place_replicas
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition


@click.command("generate")
@topics_argument(required=False)
@click.option(
    "--topics-to-move-json-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file such as {"topics": [{"topic": "orders"}], "version": 1}.',
)
@click.option("--broker-list", required=True, metavar="ID,...", help="The brokers to move the topics to.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore the racks of the brokers.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    topics_to_move_json_file: Path | None,
    broker_list: str,
    disable_rack_aware: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """Print the present replicas of topics and a plan that spreads them over the brokers. Nothing is moved.

    odradek partitions reassign generate orders --broker-list 0,1,2 -o json > plan.json
    """
    names = [name for topic in topics for name in topic.split(",")]
    if topics_to_move_json_file is not None:
        names += parse_topics(topics_to_move_json_file.read_text())
    if not names:
        raise UsageProblem("name topics, or give --topics-to-move-json-file")
    brokers = parse_numbers(broker_list)
    if len(set(brokers)) != len(brokers):
        raise UsageProblem(f"--broker-list {broker_list!r} names a broker twice")
    with admin_client(bootstrap) as admin:
        current = replicas_of_topics(admin, names)
        log_dirs = log_dirs_of(admin, names)
        racks = {broker.broker_id: broker.rack for broker in admin.describe_cluster().brokers}
    proposed = propose(current, {one: racks[one] for one in brokers if one in racks}, disable_rack_aware)
    lines = [
        "Current partition replica assignment",
        format_plan(current, log_dirs),
        "",
        "Proposed partition reassignment configuration",
        format_plan(proposed, {}),
    ]
    if output == "json":  # the plan alone, as `execute` reads it
        click.echo(format_plan(proposed, {}))
        return
    rows = [
        {"topic": one.topic, "partition": one.partition, "replicas": current[one], "proposed": proposed[one]}
        for one in sorted(current)
    ]
    print_rows(output, rows, lines, title="partitions")


def propose(
    current: Replicas, racks: dict[int, str | None], ignores_racks: bool
) -> dict[TopicPartition, tuple[int, ...]]:
    """As many replicas as now, spread over these brokers from a random one on."""
    if not ignores_racks and len({rack is None for rack in racks.values()}) > 1:
        raise Failed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    sites = [
        BrokerLocation(broker, None if ignores_racks else rack) for broker, rack in sorted(racks.items())
    ]
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted({partition.topic for partition in current}):
        mine = [partition for partition in sorted(current) if partition.topic == topic]
        seed = random.randrange(max(1, len(sites)))
        try:
            placed = place_replicas(sites, len(mine), len(current[mine[0]]), start_index=seed, shift=seed)
        except KafkaError as error:
            raise Failed(str(error)) from None
        proposed |= dict(zip(mine, placed.values(), strict=True))
    return proposed
