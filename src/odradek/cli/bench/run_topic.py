"""The topic of a run: an existing one, or one created for the run and deleted afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from odradek.cli.connecting import Failed, admin_client
from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import no_such_topic
from odradek.client.admin.base import require
from odradek.common.errors import OdradekError

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

PREFIX = "odradek-bench-"
DELETE_TIMEOUT_MS = 5000


class RunTopic(NamedTuple):
    """The topic of a run."""

    name: str
    num_partitions: int


@contextmanager
def run_topic(bootstrap: str, name: str | None, partitions: int | None) -> Iterator[RunTopic]:
    """The topic of that name; without a name a new one, which is deleted after the run."""
    if name is not None and partitions is not None:
        raise UsageProblem("--partitions is for a topic that is made for the run; leave --topic out, or it")
    with admin_client(bootstrap) as admin:
        if name is not None:
            yield _find(admin, name)
            return
        made = admin.create_topic(PREFIX + secrets.token_hex(4), num_partitions=partitions or 1)
        try:
            yield RunTopic(made.name, partitions or 1)
        finally:
            _delete(admin, made.name)


def _find(admin: Admin, name: str) -> RunTopic:
    counts = {one.name: one.num_partitions for one in admin.list_topics(include_internal=True)}
    if name not in counts:
        raise Failed(no_such_topic(name, counts))
    return RunTopic(name, counts[name])


def _delete(admin: Admin, name: str) -> None:
    """Delete the topic. A failure is only printed, so that it does not replace an error of the run."""
    try:
        require(admin.delete_topics([name], timeout_ms=DELETE_TIMEOUT_MS)[name])
    except OdradekError as problem:
        click.echo(f"Topic {name} of this run could not be deleted: {problem}", err=True)
