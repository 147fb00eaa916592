"""`odradek groups reset-offsets`: reset the offsets of an empty group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.groups.columns import GroupColumn, column_lines
from odradek.cli.groups.describe_offsets import committed_offsets
from odradek.cli.groups.group_names import groups_argument, only_group, still_read
from odradek.cli.groups.reset_file import read_offsets
from odradek.cli.groups.reset_goals import (
    Goal,
    Known,
    Target,
    new_offset,
    parse_datetime_ms,
    parse_duration_ms,
)
from odradek.cli.groups.scope import check_scope, existing, parse_topics, scope_options
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_COLUMNS = [
    GroupColumn("GROUP", "group", grows=True),
    GroupColumn("TOPIC", "topic", grows=True),
    GroupColumn("PARTITION", "partition", 10),
    GroupColumn("NEW-OFFSET", "new_offset", 0),
]
_DRY_RUN = "Dry run: nothing is changed. The same command with --execute does it."


@click.command("reset-offsets")
@groups_argument("GROUP")
@scope_options
@click.option("--to-earliest", is_flag=True, help="To the earliest offset.")
@click.option("--to-latest", is_flag=True, help="To the latest offset.")
@click.option("--to-current", is_flag=True, help="To the current offset, or the latest without one.")
@click.option("--to-offset", type=int, metavar="N", help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forward by N records; back if negative.")
@click.option("--to-datetime", metavar="DATE", help="To the first record from 2026-01-31T12:00:00.000 on.")
@click.option("--by-duration", metavar="DURATION", help="To the first record not older than PnDTnHnMnS.")
@click.option("--from-file", metavar="FILE", help="To the offsets in a CSV file, as --export prints it.")
@click.option("--execute", is_flag=True, help="Change the offsets.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done; the default.")
@click.option("--export", "is_export", is_flag=True, help="Print topic,partition,offset for --from-file.")
@bootstrap_option
@output_option
def command(
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    dry_run: bool,
    is_export: bool,
    bootstrap: str,
    output: str | None,
    **targets: Any,
) -> None:
    """Reset the offsets of a group. Without --execute nothing is changed.

    \b
    odradek groups reset-offsets billing --all-topics --to-earliest
    odradek groups reset-offsets billing --topic orders:0,1 --shift-by -100 --execute
    """
    group = only_group(groups)
    if execute and dry_run:
        raise UsageProblem("--execute and --dry-run exclude each other")
    goal = _goal(group, targets)
    if goal.target is not Target.FILE:
        check_scope(topics, all_topics)
    elif topics or all_topics:
        raise UsageProblem("--from-file says by itself what to move; leave --topic and --all-topics out")
    wanted = parse_topics(topics)
    with admin_client(bootstrap) as admin:
        _check_idle(admin, group)
        committed = {partition: one.offset for partition, one in committed_offsets(admin, group).items()}
        if goal.target is Target.FILE:
            partitions = existing(admin, parse_topics(f"{topic}:{one}" for topic, one in goal.offsets))
        else:
            partitions = sorted(committed) if all_topics else existing(admin, wanted)
        resets = _plan(admin, goal, partitions, committed)
        _print(output, group, resets, is_export=is_export)
        if execute:
            commit_resets(admin, group, resets)
    if not execute:
        click.echo(_DRY_RUN, err=True)


class Reset(NamedTuple):
    """The reset of one partition."""

    partition: TopicPartition
    old_offset: int | None
    new_offset: int


def _goal(group: str, targets: dict[str, Any]) -> Goal:
    """The reset that the flags select; exactly one must be given."""
    # Not by equality: 0 is an offset.
    given = {name: value for name, value in targets.items() if value is not None and value is not False}
    if len(given) != 1:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in (given or targets))
        raise UsageProblem(f"{flags}: give exactly one of them")
    ((name, value),) = given.items()
    match name:
        case "to_datetime":
            return Goal(Target.TIMESTAMP, max(0, parse_datetime_ms(value)))
        case "by_duration":
            return Goal(Target.TIMESTAMP, max(0, round(time.time() * 1000) - parse_duration_ms(value)))
        case "from_file":
            return Goal(Target.FILE, offsets=read_offsets(value, group))
        case "to_offset" | "shift_by":
            return Goal(Target(f"--{name.replace('_', '-')}"), value)
        case _:
            return Goal(Target(f"--{name.replace('_', '-')}"))


def _check_idle(admin: Admin, group: str) -> None:
    """Failed if the group has members: they would overwrite the new offsets."""
    from odradek.client.broker_errors import GroupIdNotFound  # noqa: PLC0415

    try:
        described = admin.describe_group(group)
    except GroupIdNotFound:
        click.echo(f"There is no group {group!r} yet; committing offsets makes it.", err=True)
        return
    if described.members:
        count = len(described.members)
        how = f"it is {described.state} and has {count} member{'s' if count > 1 else ''}"
        raise Failed(still_read(group, how))


def _plan(
    admin: Admin, goal: Goal, partitions: list[TopicPartition], committed: dict[TopicPartition, int]
) -> list[Reset]:
    from odradek.client.admin.base import require  # noqa: PLC0415
    from odradek.client.admin.offsets import OffsetSpec  # noqa: PLC0415

    if not partitions:
        raise Failed("the group has no offsets; --topic names topics to begin with")

    def offsets(at: int) -> dict[TopicPartition, int]:
        found = admin.list_offsets(dict.fromkeys(partitions, at))
        return {partition: require(one).offset for partition, one in found.items()}

    earliest, latest = offsets(OffsetSpec.EARLIEST), offsets(OffsetSpec.LATEST)
    at_time = offsets(goal.number) if goal.target is Target.TIMESTAMP else {}
    resets = []
    for partition in partitions:
        found = at_time.get(partition, -1)
        old = committed.get(partition)
        known = Known(earliest[partition], latest[partition], old, found if found >= 0 else None)
        offset, note = new_offset(goal, partition, known)
        resets.append(Reset(partition, old, offset))
        if note is not None:
            click.echo(f"Warning: {note}.", err=True)
    return resets


def _print(output: str | None, group: str, resets: list[Reset], *, is_export: bool) -> None:
    rows = [
        {
            "group": group,
            "topic": one.partition.topic,
            "partition": one.partition.partition,
            "current_offset": one.old_offset,
            "new_offset": one.new_offset,
        }
        for one in resets
    ]
    if is_export:
        for row in rows:
            click.echo(f"{row['topic']},{row['partition']},{row['new_offset']}")
    else:
        print_rows(output, rows, column_lines(_COLUMNS, rows), title="offsets")


def commit_resets(admin: Admin, group: str, resets: list[Reset]) -> None:
    """Commit new offsets for a group; Failed if a member has joined in the meantime."""
    from odradek.client.broker_errors import UnknownMemberId  # noqa: PLC0415
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    outcomes = admin.alter_group_offsets(group, {one.partition: one.new_offset for one in resets})
    if any(isinstance(outcome, UnknownMemberId) for outcome in outcomes.values()):
        raise Failed(still_read(group, "members have just joined; nothing was changed"))
    problems = [
        f"{partition}: {outcome}"
        for partition, outcome in outcomes.items()
        if isinstance(outcome, BrokerError)
    ]
    if problems:
        raise Failed("\n".join(problems))
