"""The JSON of a reassignment plan, as kafka-reassign-partitions.sh reads and writes it.

{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/data/b"]}]}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from odradek.cli.options import UsageProblem, check_readable
from odradek.common.ids import TopicPartition

ANY_LOG_DIR = "any"
_PLAN = '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}], "version": 1}'
_TOPICS = '{"topics": [{"topic": "orders"}], "version": 1}'

plan_option = click.option(
    "--reassignment-json-file",
    "plan_path",
    required=True,
    type=click.Path(path_type=Path),
    help="The plan, as printed by `generate`.",
)
preserve_option = click.option("--preserve-throttles", is_flag=True, help="Leave the throttles as they are.")

Replicas = Mapping[TopicPartition, Sequence[int]]


class Replica(NamedTuple):
    """One replica of a partition."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.broker_id}"


class Plan(NamedTuple):
    """Where partitions go, and the directories of those replicas that have a given one."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    log_dirs: dict[Replica, str]


def read_plan(path: Path) -> Plan:
    """The plan in a file; UsageProblem says what is wrong with it."""
    check_readable(str(path))
    return parse_plan(path.read_text())


def parse_plan(text: str) -> Plan:
    """A plan that names each partition once, with at least one replica, and no broker twice."""
    rows = [_parse_row(row) for row in _rows(text, "partitions", _PLAN)]
    if not rows:
        raise UsageProblem("Partition reassignment list cannot be empty")
    twice = [str(one) for one, count in Counter(partition for partition, _, _ in rows).items() if count > 1]
    if twice:
        raise UsageProblem(
            f"Partition reassignment contains duplicate topic partitions: {','.join(sorted(twice))}"
        )
    log_dirs = {
        Replica(partition, broker): log_dir
        for partition, brokers, names in rows
        for broker, log_dir in zip(brokers, names, strict=True)
        if log_dir != ANY_LOG_DIR
    }
    return Plan({partition: brokers for partition, brokers, _ in rows}, log_dirs)


def parse_topics(text: str) -> list[str]:
    """The topics of a file for `generate`."""
    try:
        topics = [str(row["topic"]) for row in _rows(text, "topics", _TOPICS)]
    except (KeyError, TypeError):
        raise UsageProblem(f"the file is not like {_TOPICS}") from None
    twice = [name for name, count in Counter(topics).items() if count > 1]
    if twice:
        raise UsageProblem(f"List of topics to reassign contains duplicate entries: {', '.join(twice)}")
    return topics


def format_plan(replicas: Replicas, log_dirs: Mapping[Replica, str]) -> str:
    """One line of JSON; a replica without a directory gets `any`."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(brokers),
            "log_dirs": [log_dirs.get(Replica(partition, broker), ANY_LOG_DIR) for broker in brokers],
        }
        for partition, brokers in sorted(replicas.items(), key=lambda item: item[0])
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _rows(text: str, field: str, example: str) -> list[Any]:
    try:
        document = json.loads(text)
        version, rows = document.get("version", 1), document[field]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageProblem(f"the file is not like {example}") from None
    if version != 1:
        raise UsageProblem(f"the file has version {version}; only version 1 is known")
    if not isinstance(rows, list):
        raise UsageProblem(f"the file is not like {example}")
    return rows


def _parse_row(row: Any) -> tuple[TopicPartition, tuple[int, ...], tuple[str, ...]]:
    try:
        partition = TopicPartition(str(row["topic"]), int(row["partition"]))
        brokers = tuple(int(broker) for broker in row["replicas"])
        log_dirs = tuple(str(one) for one in row.get("log_dirs") or [ANY_LOG_DIR] * len(brokers))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageProblem(f"{json.dumps(row)} is not like a partition of {_PLAN}") from None
    if not brokers:
        raise UsageProblem("Partition replica list cannot be empty")
    twice = [str(broker) for broker, count in Counter(brokers).items() if count > 1]
    if twice:
        raise UsageProblem(
            "Partition replica lists may not contain duplicate entries: "
            f"{partition} contains multiple entries for {','.join(twice)}"
        )
    if len(log_dirs) != len(brokers):
        raise UsageProblem(
            f"Size of replicas list {list(brokers)} is different from size of log dirs list "
            f"{list(log_dirs)} for partition {partition}"
        )
    return partition, brokers, log_dirs
