"""`odradek partitions reassign verify`: what is done of a plan. Exit code 1 as long as something is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.cli.partitions.reassign.log_dir_moves import move_states
from odradek.cli.partitions.reassign.plan import Plan, plan_option, preserve_option, read_plan
from odradek.cli.partitions.reassign.throttles import clear_throttles
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin


class _State(NamedTuple):
    """A partition of the plan; `replicas` are its present ones, none if it does not exist."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    is_under_way: bool

    @property
    def word(self) -> str:
        if self.is_under_way:
            return "in progress"
        return "completed" if self.replicas == self.target else "not active"

    def line(self) -> str:
        if self.is_under_way:
            return f"Reassignment of partition {self.partition} is still in progress."
        if self.replicas == self.target:
            return f"Reassignment of partition {self.partition} is completed."
        return (
            f"There is no active reassignment of partition {self.partition}, but replica set is "
            f"{_ids(self.replicas)} rather than {_ids(self.target)}."
        )


@click.command("verify")
@plan_option
@preserve_option
@bootstrap_option
@output_option
def command(plan_path: Path, preserve_throttles: bool, bootstrap: str, output: str | None) -> None:
    """Show whether the reassignments of a plan are done; once all are, remove the throttles.

    odradek partitions reassign verify --reassignment-json-file plan.json
    """
    plan = read_plan(plan_path)
    with admin_client(bootstrap) as admin:
        states, is_any_under_way = _states(admin, plan)
        directories = move_states(admin, plan.log_dirs)
        lines = ["Status of partition reassignment:", *(state.line() for state in states)]
        # The other tool ends its part about directories with a line feed even if it is empty.
        lines += [state.line(replica) for replica, state in directories.items()] or [""]
        are_directories_done = all(state.is_done for state in directories.values())
        if not is_any_under_way and are_directories_done and not preserve_throttles:
            existing = {state.partition.topic for state in states if state.replicas}
            brokers = {broker for state in states for broker in state.target}
            lines += clear_throttles(admin, existing, brokers)
    rows = [
        {
            "topic": state.partition.topic,
            "partition": state.partition.partition,
            "replicas": state.replicas,
            "target": state.target,
            "state": state.word,
        }
        for state in states
    ]
    print_rows(output, rows, lines, title="reassignments")
    is_placed = all(state.current == state.target and state.is_done for state in directories.values())
    if not is_placed or any(state.word != "completed" for state in states):
        raise SystemExit(1)


def _states(admin: Admin, plan: Plan) -> tuple[list[_State], bool]:
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    under_way = admin.list_partition_reassignments()
    present = {
        TopicPartition(name, one.partition): one.replicas
        for name, topic in admin.describe_topics({one.topic for one in plan.replicas}).items()
        if not isinstance(topic, BrokerError)
        for one in topic.partitions
    }
    states = [
        _State(partition, present.get(partition, ()), target, partition in under_way)
        for partition, target in sorted(plan.replicas.items(), key=lambda item: item[0])
    ]
    return states, bool(under_way)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
