"""`odradek topics list`: the names of all topics."""

from __future__ import annotations

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.cli.topic_names import matching, regex_option, topics_argument
from odradek.common.ids import uuid_to_text


@click.command("list")
@topics_argument(required=False)
@regex_option
@click.option("--exclude-internal", is_flag=True, help="Leave out topics such as __consumer_offsets.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    regex: bool,
    exclude_internal: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """List all topics, or those that are named.

    odradek topics list --regex 'orders.*'
    """
    with admin_client(bootstrap) as admin:
        names = matching(
            admin, topics, regex=regex, include_internal=not exclude_internal, may_be_missing=True
        )
        listed = {one.name: one for one in admin.list_topics(include_internal=True)}
    rows = [
        {
            "topic": name,
            "partitions": listed[name].num_partitions,
            "topic_id": uuid_to_text(listed[name].topic_id),
            "internal": listed[name].is_internal,
        }
        for name in names
        if name in listed
    ]
    print_rows(output, rows, names, title="topics")
