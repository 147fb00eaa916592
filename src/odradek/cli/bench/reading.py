"""Reads the records of a run with a consumer and measures the time to the first and the last record."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.cli.bench.interruption import Interruption
from odradek.cli.bench.live import LiveProgress, Meter, live_progress
from odradek.cli.bench.run_topic import RunTopic
from odradek.client.consumer.consumer import Consumer
from odradek.common.ids import TopicPartition

POLL_S = 0.2
"""How long a poll waits for records before the interruption is checked."""


class ReadOptions(NamedTuple):
    """How a run reads; without `records`, up to the end offsets at the start of the run."""

    records: int | None
    group: str | None
    by_table: bool
    timeout_ms: int
    settings: dict[str, Any]


class ReadResult(NamedTuple):
    """What was read; `value_bytes` counts keys and values."""

    records: int
    value_bytes: int
    started_ms: int
    elapsed_s: float
    first_record_s: float | None
    wanted: int


Batch = tuple[int, int]
"""Records, and the bytes of their keys and values."""


def read_records(
    wanted: ReadOptions, topic: RunTopic, interruption: Interruption, interval_ms: int, record_size: int
) -> ReadResult:
    """ReadResult as many records as wanted; fewer after `timeout_ms` without a record, or an interruption."""
    started_ms, start_s = time.time_ns() // 1_000_000, time.monotonic()
    with Consumer(group_id=wanted.group, **wanted.settings) as consumer:
        partitions = [TopicPartition(topic.name, number) for number in range(topic.num_partitions)]
        total = wanted.records if wanted.records is not None else _left(consumer, partitions)
        if wanted.group is None:
            consumer.assign(partitions)
        else:
            consumer.subscribe([topic.name])
        poll = _poll_table if wanted.by_table else _poll
        records, value_bytes, first_s, last_s = 0, 0, None, time.monotonic()
        meter = Meter(total, record_size, start_s)
        with live_progress("consume", meter, interval_ms, lambda: LiveProgress(records)):
            while records < total and not interruption.is_wanted:
                count, size = poll(consumer, total - records)
                if count:
                    last_s = time.monotonic()
                    first_s = first_s or last_s
                elif (time.monotonic() - last_s) * 1000 > wanted.timeout_ms:
                    break
                records, value_bytes = records + count, value_bytes + size
    first_record_s = None if first_s is None else first_s - start_s
    return ReadResult(records, value_bytes, started_ms, last_s - start_s, first_record_s, total)


Poll = Callable[[Consumer[bytes, bytes], int], Batch]


def _poll(consumer: Consumer[bytes, bytes], left: int) -> Batch:
    records = consumer.poll(POLL_S, max_records=min(left, consumer.config.max_poll_records))
    return len(records), sum(len(one.value or b"") + len(one.key or b"") for one in records)


def _poll_table(consumer: Consumer[bytes, bytes], _: int) -> Batch:
    import pyarrow.compute as pc  # noqa: PLC0415

    table = consumer.poll_table(POLL_S)
    sizes = [pc.sum(pc.binary_length(table.column(name))).as_py() or 0 for name in ("key", "value")]
    return table.num_rows, sum(sizes)


def _left(consumer: Consumer[bytes, bytes], partitions: list[TopicPartition]) -> int:
    """The number of records from the start offsets to the end offsets."""
    begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    if consumer.config.group_id is not None:
        for partition, committed in consumer.committed(partitions).items():
            if committed is not None:
                begins[partition] = max(begins[partition], committed.offset)
    return sum(ends[partition] - begins[partition] for partition in partitions)
