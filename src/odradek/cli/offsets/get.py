"""`odradek offsets get`: offsets by name or by time, as kafka-get-offsets.sh prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.offsets.partitions import PartitionPattern, parse_numbers, parse_topic_partitions, selected
from odradek.cli.offsets.timestamps import parse_timestamp
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.cli.topic_names import matching, regex_option, topics_argument
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin


@click.command("get")
@topics_argument(required=False)
@regex_option
@click.option("--partitions", metavar="N,...", help="Only these partitions; all by default.")
@click.option(
    "--topic-partitions",
    metavar="TOPIC:PARTITIONS,...",
    help="orders:0, orders:0-3 (3 left out), orders:2-, or :0 for all topics. Not with topics.",
)
@click.option(
    "--time",
    "moment",
    default="latest",
    help="latest, earliest, max-timestamp, earliest-local, latest-tiered, milliseconds, or a date.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out topics such as __consumer_offsets.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    regex: bool,
    partitions: str | None,
    topic_partitions: str | None,
    moment: str,
    exclude_internal_topics: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """Print an offset for each partition, as topic:partition:offset.

    For a time: the offset of the first record at or after it. Partitions without such a record are left out.

    odradek offsets get orders --time earliest
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    if topic_partitions and (topics or partitions):
        raise UsageProblem("--topic-partitions goes with neither topics nor --partitions")
    at = parse_timestamp(moment)
    patterns = parse_topic_partitions(topic_partitions, regex=regex) if topic_partitions else None
    numbers = parse_numbers(partitions) if partitions else None
    with admin_client(bootstrap) as admin:
        names = matching(
            admin,
            topics,
            regex=regex,
            include_internal=not exclude_internal_topics,
            may_be_missing=False,
        )
        wanted = _partitions(admin, names, patterns, numbers)
        if not wanted:
            raise Failed("no partition matches")
        found = admin.list_offsets(dict.fromkeys(wanted, at))
    problems = [f"{partition}: {one}" for partition, one in found.items() if isinstance(one, BrokerError)]
    rows, lines = [], []
    for partition in wanted:
        one = found[partition]
        if isinstance(one, BrokerError):
            continue
        row = {"topic": partition.topic, "partition": partition.partition}
        rows.append({**row, "offset": _known(one.offset), "timestamp_ms": _known(one.timestamp_ms)})
        if one.offset >= 0:
            lines.append(f"{partition.topic}:{partition.partition}:{one.offset}")
    print_rows(output, rows, lines, title="offsets")
    if problems:
        raise Failed("\n".join(problems))


def _partitions(
    admin: Admin, names: list[str], patterns: list[PartitionPattern] | None, numbers: list[int] | None
) -> list[TopicPartition]:
    found = []
    for one in admin.list_topics(include_internal=True):
        if one.name not in names:
            continue
        chosen = (
            range(one.num_partitions)
            if patterns is None
            else selected(patterns, one.name, range(one.num_partitions))
        )
        found += [
            TopicPartition(one.name, number) for number in chosen if numbers is None or number in numbers
        ]
    return found


def _known(number: int) -> int | None:
    return number if number >= 0 else None
