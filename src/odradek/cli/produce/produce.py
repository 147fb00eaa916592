"""`odradek produce`: what its flags mean."""

from __future__ import annotations

import click

from odradek.cli.connecting import bootstrap_option, client_settings, friendly_errors, settings_option
from odradek.cli.consume.record_format import unescape
from odradek.cli.options import UsageProblem, check_readable
from odradek.cli.produce.input_records import Headers, LineParser, Parse, console_parser, parse_json
from odradek.cli.produce.sending import SendPlan, send_input
from odradek.cli.topic_names import complete_topic, parse_pairs

_EPILOG = """\
The exit code is 0 when every record was acknowledged, 1 when one was not, 130 after Ctrl-C, which sends what
was read before. With -J the input is what `odradek consume -J` prints: a pipe copies a topic.
"""


@click.command("produce", epilog=_EPILOG)
@click.argument("topic", required=False, shell_complete=complete_topic)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("-t", "--topic", "topic_option", hidden=True, shell_complete=complete_topic)
@click.option(
    "-p", "--partition", type=click.IntRange(min=-1), help="The partition; by key or in turn by default."
)
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-delimiter", help="Delimiter between key and value of a line: -K :")
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record. Repeatable.",
)
@click.option("-D", "--delimiter", default="\\n", help="What ends a record; \\n by default.")
@click.option("-Z", "--null", "empty_is_null", is_flag=True, help="An empty value, or key, is null.")
@click.option(
    "-l", "--lines", "by_lines", is_flag=True, help="Files hold lines; otherwise each is one record."
)
@click.option(
    "-J", "--json", "is_json", is_flag=True, help="Each line is a JSON object: key, payload, headers, ts."
)
@click.option(
    "-z",
    "--compression-codec",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    help="How to compress.",
)
@click.option(
    "--acks",
    "--request-required-acks",
    type=click.Choice(["0", "1", "-1", "all"]),
    default="all",
    help="Acknowledgements required for each record.",
)
@click.option(
    "--property",
    "--reader-property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="As for kafka-console-producer.sh: parse.key=true, key.separator=: and so on. Repeatable.",
)
@settings_option
@bootstrap_option
def command(
    topic: str | None,
    files: tuple[str, ...],
    topic_option: str | None,
    partition: int | None,
    key: str | None,
    key_delimiter: str | None,
    headers: tuple[str, ...],
    delimiter: str,
    empty_is_null: bool,
    by_lines: bool,
    is_json: bool,
    compression_codec: str,
    acks: str,
    properties: tuple[str, ...],
    settings: tuple[str, ...],
    bootstrap: str,
) -> None:
    """Send lines of the standard input, or files, to a topic.

    \b
    echo hello | odradek produce orders
    odradek produce orders -K : -H source=shell -z lz4 < lines.txt
    odradek consume orders -J -e | odradek produce copy -J
    """
    if topic_option is not None:
        files = (topic, *files) if topic is not None else files
        topic = topic_option
    if topic is None:
        raise UsageProblem("no topic given; `odradek topics list` shows all")
    if not unescape(delimiter):
        raise UsageProblem("-D is empty; records need something between them")
    for path in files:
        check_readable(path)
    plan = SendPlan(
        topic=topic,
        files=files,
        is_whole_file=bool(files) and not by_lines,
        delimiter=unescape(delimiter),
        parse=_choose_parser(is_json, properties, key, key_delimiter, empty_is_null),
        partition=None if partition == -1 else partition,
        headers=_parse_headers(headers),
        settings={
            "bootstrap_servers": bootstrap,
            "compression_type": compression_codec,
            "acks": acks,
            **client_settings(settings),
        },
    )
    with friendly_errors():
        send_input(plan)


def _choose_parser(
    is_json: bool,
    properties: tuple[str, ...],
    key: str | None,
    key_delimiter: str | None,
    empty_is_null: bool,
) -> Parse:
    has_keys = key is not None or key_delimiter is not None
    if sum((is_json, bool(properties), has_keys)) > 1 or (key is not None and key_delimiter is not None):
        raise UsageProblem("-J, --property, -k and -K exclude each other")
    if is_json:
        return parse_json
    if properties:
        return console_parser(parse_pairs(properties, "--property"))
    if key_delimiter is not None and not key_delimiter:
        raise UsageProblem("-K is empty; a key needs something after it")
    return LineParser(
        key=None if key is None else key.encode(),
        key_delimiter=None if key_delimiter is None else unescape(key_delimiter),
        null=b"" if empty_is_null else None,
    )


def _parse_headers(texts: tuple[str, ...]) -> Headers:
    pairs = [text.partition("=") for text in texts]
    for name, _, _ in pairs:
        if not name:
            raise UsageProblem("-H has no name; give NAME=VALUE")
    # As with kcat, a header without a value has a null.
    return tuple((name, value.encode() if equals else None) for name, equals, value in pairs)
