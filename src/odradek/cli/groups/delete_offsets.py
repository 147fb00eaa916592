"""`odradek groups delete-offsets`: delete committed offsets of topics that the group is not subscribed to."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.groups.columns import GroupColumn, column_lines
from odradek.cli.groups.group_names import groups_argument, only_group, refusal, still_read
from odradek.cli.groups.scope import check_scope, existing, parse_topics, scope_options
from odradek.cli.output import output_option, print_rows

_COLUMNS = [
    GroupColumn("TOPIC", "topic", grows=True),
    GroupColumn("PARTITION", "partition", 10),
    GroupColumn("STATUS", "status"),
]


@click.command("delete-offsets")
@groups_argument("GROUP")
@scope_options
@bootstrap_option
@output_option
def command(
    groups: tuple[str, ...], topics: tuple[str, ...], all_topics: bool, bootstrap: str, output: str | None
) -> None:
    """Delete committed offsets of a group: it then starts according to auto.offset.reset.

    odradek groups delete-offsets billing --topic orders:0,1
    """
    from odradek.client.broker_errors import GroupSubscribedToTopic  # noqa: PLC0415
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    group = only_group(groups)
    check_scope(topics, all_topics)
    with admin_client(bootstrap) as admin:
        wanted = (
            sorted(admin.list_group_offsets(group)) if all_topics else existing(admin, parse_topics(topics))
        )
        try:
            outcomes = admin.delete_group_offsets(group, wanted)
        except BrokerError as error:
            raise Failed(refusal(admin, group, error)) from None
    if not outcomes:
        raise Failed(f"group {group!r} has no offsets")
    rows, problems = [], []
    for partition, outcome in sorted(outcomes.items()):
        row = {"topic": partition.topic, "partition": partition.partition}
        if isinstance(outcome, GroupSubscribedToTopic):
            problems.append(f"{partition}: {still_read(group, 'members read this topic')}")
        elif isinstance(outcome, BrokerError):
            problems.append(f"{partition}: {outcome}")
        else:
            rows.append({**row, "status": "Successful"})
    lines = [f"Request succeeded for deleting offsets from group {group}.", *column_lines(_COLUMNS, rows)]
    print_rows(output, rows, lines if rows else [], title="offsets")
    if problems:
        raise Failed("\n".join(problems))
