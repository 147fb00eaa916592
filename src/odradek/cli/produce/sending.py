"""Sends the input of `odradek produce` and reports failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from odradek.cli.connecting import Failed
from odradek.cli.produce.input_records import Headers, InputRecord, Parse, split
from odradek.cli.topic_names import no_such_topic
from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigResource, ResourceType
from odradek.client.errors import BrokerError
from odradek.client.producer.producer import Producer, RecordMetadata

CHUNK_BYTES = 64 * 1024
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class SendPlan:
    """What to send, and how."""

    topic: str
    files: tuple[str, ...]
    is_whole_file: bool
    delimiter: bytes
    parse: Parse
    partition: int | None
    headers: Headers
    settings: Mapping[str, Any]


class Tally:
    """Counts what failed, and keeps the first reason. The producer's thread calls `note`."""

    def __init__(self) -> None:
        self.failed = 0
        self.first_error: BaseException | None = None

    def note(self, error: BaseException | None, _: RecordMetadata) -> None:
        """Delivery callback of one record."""
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or error


def send_input(plan: SendPlan) -> None:
    """Send everything; Failed if a record was not acknowledged. Ctrl-C stops reading, not sending."""
    _check_target(plan)
    tally, sent, is_interrupted = Tally(), 0, False
    with Producer(**plan.settings) as producer:
        try:
            for record in _records(plan):
                _send(producer, plan, record, tally)
                sent += 1
        except KeyboardInterrupt:
            is_interrupted = True
        producer.flush()
    if tally.first_error is not None:
        raise Failed(f"{tally.failed} of {sent} records were not acknowledged: {tally.first_error}")
    if is_interrupted:
        sys.exit(INTERRUPTED)


def _check_target(plan: SendPlan) -> None:
    """Failed unless the cluster can be reached and the topic exists or can be created automatically."""
    with Admin(bootstrap_servers=plan.settings["bootstrap_servers"]) as admin:
        admin.connect()
        counts = {one.name: one.num_partitions for one in admin.list_topics(include_internal=True)}
        if plan.topic not in counts:
            if not _makes_topics(admin):
                raise Failed(no_such_topic(plan.topic, counts))
        elif plan.partition is not None and plan.partition >= counts[plan.topic]:
            last = counts[plan.topic] - 1
            raise Failed(f"{plan.topic} has no partition {plan.partition}; it has 0 to {last}")


def _makes_topics(admin: Admin) -> bool:
    broker = ConfigResource(ResourceType.BROKER, str(admin.describe_cluster().brokers[0].broker_id))
    name = "auto.create.topics.enable"
    configs = admin.describe_configs([broker], names=[name])[broker]
    # A client that may not describe settings may still be allowed to send.
    return isinstance(configs, BrokerError) or name not in configs or configs[name].value == "true"


def _send(producer: Producer[bytes, bytes], plan: SendPlan, record: InputRecord, tally: Tally) -> None:
    headers = plan.headers + record.headers
    producer.send(
        plan.topic,
        record.value,
        key=record.key,
        partition=plan.partition,
        headers=headers or None,
        timestamp=record.timestamp_ms,
        on_delivery=tally.note,
    )


def _records(plan: SendPlan) -> Iterator[InputRecord]:
    if plan.is_whole_file:
        for number, path in enumerate(plan.files, 1):
            with open(path, "rb") as file:
                yield plan.parse(number, file.read())
        return
    with ExitStack() as opened:
        if plan.files:
            inputs = [opened.enter_context(open(path, "rb")) for path in plan.files]
        else:
            inputs = [sys.stdin.buffer]  # type: ignore[list-item]
            if sys.stdin.isatty():
                click.echo("Type records, one in a line; Ctrl-D ends.", err=True)
        pieces = (piece for one in inputs for piece in split(_chunks(one), plan.delimiter))
        for number, piece in enumerate(pieces, 1):
            yield plan.parse(number, piece)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """Read the input as it arrives, so that a typed line is sent at once."""
    while chunk := source.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
        yield chunk
