"""Names of groups on the command line: completed, given by position or option, and corrected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import complete_names
from odradek.cli.options import UsageProblem

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.groups import GroupListing
    from odradek.client.errors import BrokerError

_CONSUMERS = ("", "consumer")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def complete_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Groups that start with `incomplete`."""
    return complete_names(ctx, incomplete, lambda admin: [listed.group_id for listed in admin.list_groups()])


def groups_argument(metavar: str = "[GROUP]...") -> Decorator:
    """Groups by position or, as for Kafka's tool, by `--group`; both are passed as `groups`."""
    option = click.option(
        "--group",
        "group_options",
        multiple=True,
        is_eager=True,
        hidden=True,
        shell_complete=complete_group,
    )
    argument = click.argument(
        "groups", nargs=-1, metavar=metavar, callback=_join, shell_complete=complete_group
    )
    return lambda function: option(argument(function))


def _join(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*given, *ctx.params.pop("group_options", ())]))


def only_group(groups: tuple[str, ...]) -> str:
    """The one group of a command that takes no more."""
    if not groups:
        raise UsageProblem("which group? `odradek groups list` shows all")
    if len(groups) > 1:
        raise UsageProblem(f"one group at a time; these are {len(groups)}: {', '.join(groups)}")
    return groups[0]


def groups_of_consumers(admin: Admin) -> list[str]:
    """All groups, without those of other programs such as Kafka Connect."""
    return [listed.group_id for listed in admin.list_groups() if is_of_consumers(listed)]


def is_of_consumers(listed: GroupListing) -> bool:
    """Whether consumers use the group, by joining it or only for its offsets."""
    return listed.protocol_type in _CONSUMERS


def no_such_group(admin: Admin, name: str) -> str:
    """The message for a group that does not exist."""
    names = [listed.group_id for listed in admin.list_groups()]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"there is no group {name!r}; did you mean {' or '.join(near)}?"
    return f"there is no group {name!r}; `odradek groups list` shows all"


def refusal(admin: Admin, group: str, error: BrokerError) -> str:
    """The message for a broker error about a group, with the next step where there is one."""
    from odradek.client.broker_errors import GroupIdNotFound, NonEmptyGroup  # noqa: PLC0415

    if isinstance(error, GroupIdNotFound):
        return no_such_group(admin, group)
    if isinstance(error, NonEmptyGroup):
        return still_read(group, "it has members")
    return f"{group}: {error}"


def still_read(group: str, how: str) -> str:
    """The message for a group that is in use."""
    return (
        f"group {group!r} is in use: {how}. Stop them and try again; "
        f"`odradek groups describe {group} --members` shows who they are"
    )


def problems_of(admin: Admin, refused: Iterable[tuple[str, BrokerError]]) -> str:
    """A sentence for each group that was refused."""
    return "\n".join(refusal(admin, group, error) for group, error in refused)
