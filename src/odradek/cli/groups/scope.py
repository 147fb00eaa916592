"""Parses the flags that select partitions: `--topic orders`, `--topic orders:0,1`, `--all-topics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import Failed
from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import complete_topic, no_such_topic
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

Wanted = dict[str, set[int] | None]
"""The partitions of each topic by number; None for all of them."""


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--topic` and `--all-topics`, as `topics` and `all_topics`."""
    topic = click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="TOPIC[:N,...]",
        help="Only this topic, or these partitions of it. Repeatable.",
        shell_complete=complete_topic,
    )
    everything = click.option(
        "--all-topics", is_flag=True, help="Every partition of which the group has an offset."
    )
    return topic(everything(function))


def parse_topics(words: Iterable[str]) -> Wanted:
    """Parse values such as orders:0,1; UsageProblem for an invalid one."""
    wanted: Wanted = {}
    for word in words:
        topic, colon, numbers = word.partition(":")
        if not topic or (colon and not _are_numbers(numbers)):
            raise UsageProblem(f"--topic {word!r} is neither a topic nor TOPIC:PARTITION,...")
        earlier = wanted.setdefault(topic, set())
        if not colon or earlier is None:
            wanted[topic] = None
        else:
            earlier.update(int(number) for number in numbers.split(","))
    return wanted


def _are_numbers(text: str) -> bool:
    return all(number.isascii() and number.isdecimal() for number in text.split(","))


def existing(admin: Admin, wanted: Wanted) -> list[TopicPartition]:
    """The partitions in order; Failed for one that does not exist."""
    counts = {one.name: one.num_partitions for one in admin.list_topics(include_internal=True)}
    found = []
    for topic, numbers in wanted.items():
        count = _count(topic, counts)
        for number in sorted(range(count) if numbers is None else numbers):
            if number >= count:
                raise Failed(f"{topic} has no partition {number}; it has 0 to {count - 1}")
            found.append(TopicPartition(topic, number))
    return sorted(found)


def _count(topic: str, counts: Mapping[str, int]) -> int:
    if topic not in counts:
        raise Failed(no_such_topic(topic, counts))
    return counts[topic]


def check_scope(topics: tuple[str, ...], all_topics: bool) -> None:
    """UsageProblem unless exactly one of the two is given."""
    if bool(topics) == all_topics:
        raise UsageProblem("give either --topic TOPIC[:N,...] or --all-topics")
