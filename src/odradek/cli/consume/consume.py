"""`odradek consume`: what its flags mean."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import click

from odradek.cli.connecting import bootstrap_option, client_settings, friendly_errors, settings_option
from odradek.cli.consume.reading import ReadPlan, read_until_interrupted
from odradek.cli.consume.record_format import (
    CONSOLE_PROPERTIES,
    Format,
    as_json,
    console,
    format_string,
    plain,
    unescape,
)
from odradek.cli.consume.start_offsets import parse_span
from odradek.cli.groups.group_names import complete_group
from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import complete_topic, parse_pairs
from odradek.client.admin.offsets import IsolationLevel
from odradek.client.network.background_loop import new_event_loop

_EPILOG = """\
\b
-f takes %s value, %k key, %t topic, %p partition, %o offset, %T timestamp, %h headers, %S and %K sizes,
and the escapes \\n \\r \\t \\\\ \\0 \\xFF. -J prints one object per record, with kcat's names.
"""

NOT_FOR_GROUPS = (
    "a group continues from its offsets: with --group, -o is beginning or end, for partitions without one; "
    "`odradek groups reset-offsets` moves a group"
)


@click.command("consume", epilog=_EPILOG)
@click.argument("topic", required=False, shell_complete=complete_topic)
@click.option("-t", "--topic", "topic_option", hidden=True, shell_complete=complete_topic)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition. Repeatable.",
)
@click.option(
    "-G",
    "--group",
    metavar="GROUP",
    shell_complete=complete_group,
    help="Read as a member of this group: continue from its offsets, share partitions, commit.",
)
@click.option(
    "-o",
    "--offset",
    "offsets",
    multiple=True,
    metavar="WHERE",
    help="beginning (the default), end, OFFSET, -COUNT from the end, s@TIME from, e@TIME until; json as -J.",
)
@click.option("--from-beginning", is_flag=True, help="The same as -o beginning.")
@click.option(
    "-c", "--max-messages", "max_records", type=click.IntRange(min=0), help="Exit after this many records."
)
@click.option("-e", "--exit-at-end", is_flag=True, help="Exit at the end of all partitions.")
@click.option("--timeout-ms", type=click.IntRange(min=0), help="Exit when no record arrives for this long.")
@click.option("-f", "--format", "template", help="Format of a record: -f '%t %p %o %k=%s\\n'.")
@click.option("-J", "--json", "is_json", is_flag=True, help="One JSON object per record.")
@click.option("-K", "--key-delimiter", help="Print the key and this before the value.")
@click.option("-D", "--delimiter", default="\\n", help="What comes after each record; \\n by default.")
@click.option("-Z", "--null", "shows_null", is_flag=True, help="Print NULL for a key or value that is null.")
@click.option(
    "--property",
    "--formatter-property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="As for kafka-console-consumer.sh: print.key=true, key.separator=: and so on. Repeatable.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    help="Whether to show records of transactions that are open or were aborted.",
)
@settings_option
@bootstrap_option
def command(
    topic: str | None,
    topic_option: str | None,
    partitions: tuple[int, ...],
    group: str | None,
    offsets: tuple[str, ...],
    from_beginning: bool,
    max_records: int | None,
    exit_at_end: bool,
    timeout_ms: int | None,
    template: str | None,
    is_json: bool,
    key_delimiter: str | None,
    delimiter: str,
    shows_null: bool,
    properties: tuple[str, ...],
    isolation_level: str,
    settings: tuple[str, ...],
    bootstrap: str,
) -> None:
    """Print the records of a topic, and new records as they arrive; Ctrl-C stops it.

    \b
    odradek consume orders -o -10 -e
    odradek consume orders -f '%o %k %s\\n' -c 5
    odradek consume orders --group billing
    odradek consume orders -o s@2026-01-31 -o e@2026-02-01 -J -e | jq .payload
    """
    name = topic or topic_option
    if name is None:
        raise UsageProblem("no topic given; `odradek topics list` shows all")
    if from_beginning:
        offsets = (*offsets, "beginning")
    show = choose_format(
        template=template,
        is_json=is_json or "json" in offsets,
        properties=parse_pairs(properties, "--property"),
        key_delimiter=key_delimiter,
        delimiter=delimiter,
        null=b"NULL" if shows_null else b"",
    )
    keywords = client_settings(settings)
    group = group or keywords.get("group_id")
    span = parse_span(tuple(text for text in offsets if text != "json"))
    if group is not None and not span.is_for_groups:
        raise UsageProblem(NOT_FOR_GROUPS)
    plan = ReadPlan(
        bootstrap,
        name,
        partitions,
        group,
        span,
        max_records,
        exit_at_end,
        timeout_ms,
        IsolationLevel[isolation_level.upper()],
        keywords,
    )
    with friendly_errors(), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(read_until_interrupted(plan, show))


def choose_format(
    *,
    template: str | None,
    is_json: bool,
    properties: Mapping[str, str],
    key_delimiter: str | None,
    delimiter: str,
    null: bytes,
) -> Format:
    """The output format that the flags select; UsageProblem if they contradict each other."""
    chosen = [
        flag for flag, is_set in (("-f", template), ("-J", is_json), ("--property", properties)) if is_set
    ]
    if len(chosen) > 1:
        raise UsageProblem(f"{' and '.join(chosen)} exclude each other")
    if template is not None:
        return format_string(template, null)
    if is_json:
        return as_json
    if properties:
        unknown = sorted(set(properties) - CONSOLE_PROPERTIES)
        if unknown:
            raise UsageProblem(f"--property {unknown[0]}: there are {', '.join(sorted(CONSOLE_PROPERTIES))}")
        return console(properties)
    return plain(unescape(delimiter), None if key_delimiter is None else unescape(key_delimiter), null)
