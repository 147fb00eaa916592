"""Names of topics on the command line: completed, matched by a regular expression, and corrected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import Failed, complete_names
from odradek.cli.options import UsageProblem

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_NAME = re.compile(r"[a-zA-Z0-9._-]+")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def complete_topic(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Topics that start with `incomplete`."""
    return complete_names(ctx, incomplete, lambda admin: [listed.name for listed in admin.list_topics()])


def topics_argument(*, required: bool) -> Decorator:
    """Topics by position or, as for Kafka's tools, by `--topic`; both are passed as `topics`."""

    option = click.option(
        "--topic",
        "topic_options",
        multiple=True,
        is_eager=True,
        hidden=True,
        shell_complete=complete_topic,
        expose_value=True,
    )
    argument = click.argument("topics", nargs=-1, callback=_join(required), shell_complete=complete_topic)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return option(argument(function))

    return decorate


regex_option = click.option(
    "--regex", is_flag=True, help="Topics are regular expressions that match whole names."
)


def _join(required: bool) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[str, ...]]:
    def join(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
        together = (*ctx.params.pop("topic_options", ()), *given)
        if required and not together and not ctx.resilient_parsing:
            raise click.MissingParameter(ctx=ctx, param=parameter, param_hint="TOPIC")
        return together

    return join


def matching(
    admin: Admin, wanted: Iterable[str], *, regex: bool, include_internal: bool, may_be_missing: bool
) -> list[str]:
    """The selected topics, by name or with `regex` by regular expression; none means all.

    As for Kafka's tools, a comma separates alternatives.
    """
    listed = admin.list_topics(include_internal=True)
    names = [one.name for one in listed]
    internal = set() if include_internal else {one.name for one in listed if one.is_internal}
    wanted = [word for one in wanted for word in ([one] if regex else one.split(","))]
    if not wanted:
        return [name for name in names if name not in internal]
    found: list[str] = []
    for word in wanted:
        matched = _by_regex(word, names) if regex else [name for name in names if name == word]
        if not matched and not may_be_missing:
            raise Failed(no_such_topic(word, names))
        found += [name for name in matched if name not in internal]
    return list(dict.fromkeys(found))


def no_such_topic(name: str, names: Iterable[str]) -> str:
    """The message for a topic that does not exist."""
    if not _NAME.fullmatch(name):
        return f"there is no topic {name!r}; --regex takes it as a regular expression"
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    if near:
        return f"there is no topic {name!r}; did you mean {' or '.join(near)}?"
    return f"there is no topic {name!r}; `odradek topics list` shows all"


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    """key=value each; UsageProblem for anything else."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageProblem(f"{option} {pair!r} is not NAME=VALUE")
        parsed[key.strip()] = value
    return parsed


def compile_regex(text: str) -> re.Pattern[str]:
    """A regular expression for names; UsageProblem if it is invalid."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageProblem(f"{text!r} is not a regular expression: {error}") from None


def _by_regex(word: str, names: Iterable[str]) -> list[str]:
    pattern = compile_regex(word.replace(",", "|"))
    return [name for name in names if pattern.fullmatch(name)]
