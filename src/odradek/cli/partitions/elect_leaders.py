"""`odradek partitions elect-leaders`: leader elections, as kafka-leader-election.sh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.base import ResultOrError


@click.command("elect-leaders")
@click.argument("partitions", nargs=-1, metavar="[TOPIC:PARTITION]...")
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="preferred: the first replica, if it is in sync. unclean: any live replica, where no replica in "
    "sync is alive; records may be lost.",
)
@click.option("--all-topic-partitions", is_flag=True, help="All partitions of all topics.")
@click.option("--topic", help="A topic, with --partition.")
@click.option("--partition", type=click.IntRange(min=0), help="A partition of --topic.")
@click.option(
    "--path-to-json-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file such as {"partitions": [{"topic": "orders", "partition": 1}]}.',
)
@bootstrap_option
@output_option
def command(
    partitions: tuple[str, ...],
    election_type: str,
    all_topic_partitions: bool,
    topic: str | None,
    partition: int | None,
    path_to_json_file: Path | None,
    bootstrap: str,
    output: str | None,
) -> None:
    """Elect leaders: of the partitions that are named, or of all.

    odradek partitions elect-leaders orders:0 orders:1
    """
    named = [_parse(one) for one in partitions]
    if (topic is None) != (partition is None):
        raise UsageProblem("--topic and --partition go together")
    if topic is not None and partition is not None:
        named.append(TopicPartition(topic, partition))
    if path_to_json_file is not None:
        named += parse_partitions(path_to_json_file.read_text())
    if bool(named) == all_topic_partitions:
        raise UsageProblem("name partitions, or give --all-topic-partitions")

    from odradek.client.admin.partitions import ElectionType  # noqa: PLC0415

    with admin_client(bootstrap) as admin:
        chosen = ElectionType[election_type.upper()]
        outcomes = admin.elect_leaders(chosen, None if all_topic_partitions else named)
    _print(output, election_type.upper(), outcomes)


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions of a file in the format of kafka-leader-election.sh."""
    try:
        rows = json.loads(text)["partitions"]
        return [TopicPartition(str(row["topic"]), int(row["partition"])) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise UsageProblem(
            'the file is not like {"partitions": [{"topic": "orders", "partition": 1}]}'
        ) from None


def _parse(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    if not topic or not number.isdecimal():
        raise UsageProblem(f"{text!r} is not TOPIC:PARTITION")
    return TopicPartition(topic, int(number))


def _print(output: str | None, election: str, outcomes: Mapping[TopicPartition, ResultOrError[None]]) -> None:
    from odradek.client.broker_errors import ElectionNotNeeded  # noqa: PLC0415

    elected = [str(one) for one, outcome in sorted(outcomes.items()) if outcome is None]
    led = [str(one) for one, outcome in sorted(outcomes.items()) if isinstance(outcome, ElectionNotNeeded)]
    failed = {
        one: outcome
        for one, outcome in sorted(outcomes.items())
        if outcome is not None and not isinstance(outcome, ElectionNotNeeded)
    }
    lines = []
    if elected:
        partitions = ", ".join(elected)
        lines.append(f"Successfully completed leader election ({election}) for partitions {partitions}")
    if led:
        lines.append(f"Valid replica already elected for partitions {', '.join(led)}")
    lines += [
        f"Error completing leader election ({election}) for partition: {one}: {type(error).__name__}: {error}"
        for one, error in failed.items()
    ]
    rows = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "elected": outcome is None,
            "error": str(outcome) if one in failed else None,
        }
        for one, outcome in sorted(outcomes.items())
    ]
    print_rows(output, rows, lines, title="elections that were needed")
    if failed:
        raise Failed(f"{len(failed)} replica(s) could not be elected")
