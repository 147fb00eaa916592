"""`odradek offsets delete-records`: delete the records before an offset, as kafka-delete-records.sh does."""

from __future__ import annotations

import json

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.offsets.partitions import parse_numbers
from odradek.cli.options import UsageProblem, check_readable
from odradek.cli.output import output_option, print_rows
from odradek.cli.topic_names import complete_topic, no_such_topic
from odradek.common.ids import TopicPartition

HIGH_WATERMARK = -1


@click.command("delete-records")
@click.argument("topic", required=False, shell_complete=complete_topic)
@click.option("--before", metavar="OFFSET", help="Delete the records before this offset; end deletes all.")
@click.option("--partitions", metavar="N,...", help="Only these partitions; all by default.")
@click.option(
    "--offset-json-file",
    metavar="FILE",
    help='{"partitions": [{"topic": "orders", "partition": 0, "offset": 5}], "version": 1}',
)
@bootstrap_option
@output_option
def command(
    topic: str | None,
    before: str | None,
    partitions: str | None,
    offset_json_file: str | None,
    bootstrap: str,
    output: str | None,
) -> None:
    """Delete the records before an offset. This cannot be undone.

    odradek offsets delete-records orders --before 1000 --partitions 0
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    if (topic is None) == (offset_json_file is None):
        raise UsageProblem("give either a topic with --before, or --offset-json-file")
    with admin_client(bootstrap) as admin:
        if offset_json_file is not None:
            wanted = read_offsets(offset_json_file)
        else:
            counts = {one.name: one.num_partitions for one in admin.list_topics(include_internal=True)}
            if topic not in counts:
                raise Failed(no_such_topic(str(topic), counts))
            numbers = parse_numbers(partitions) if partitions else range(counts[topic])
            wanted = dict.fromkeys(
                (TopicPartition(topic, number) for number in numbers), _parse_before(before)
            )
        found = admin.delete_records(wanted)
    rows, lines, problems = [], [], []
    for partition, one in sorted(found.items()):
        row = {"topic": partition.topic, "partition": partition.partition}
        if isinstance(one, BrokerError):
            problems.append(f"{partition}: {one}")
            continue
        rows.append({**row, "low_watermark": one})
        lines.append(f"partition: {partition}\tlow_watermark: {one}")
    print_rows(output, rows, lines, title="partitions")
    if problems:
        raise Failed("\n".join(problems))


def _parse_before(text: str | None) -> int:
    if text is None:
        raise UsageProblem("--before is missing: an offset, or end")
    if text == "end":
        return HIGH_WATERMARK
    if not text.isdecimal():
        raise UsageProblem(f"--before {text!r} is neither an offset nor end")
    return int(text)


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets in a file of kafka-delete-records.sh."""
    check_readable(path)
    with open(path, encoding="utf-8") as file:
        try:
            rows = json.load(file)["partitions"]
            offsets = {
                TopicPartition(str(row["topic"]), int(row["partition"])): int(row["offset"]) for row in rows
            }
        except (ValueError, KeyError, TypeError) as error:
            raise UsageProblem(f"{path} does not hold offsets as --help shows them: {error!r}") from None
    if len(offsets) != len(rows):
        raise UsageProblem(f"{path} names a partition twice")
    return offsets
