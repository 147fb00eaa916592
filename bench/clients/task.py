"""The task and the result of one measured run of a client, passed between processes as JSON."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Protocol

WARM_UP_PART = 50
"""One in this many records is sent or read before the measurement starts."""
LARGE_BATCH_BYTES, DEFAULT_BATCH_BYTES = 128 * 1024, 16 * 1024
"""What suits throughput, and Kafka's default of batch.size."""
LINGER_MS = 5
RECORDS_PER_POLL = 10_000
MOST_SECONDS = 120
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Task:
    """One run on one topic with one partition. `rows` is the size of a table.

    Large batches may be as large as a library likes; the default is the default for all of them.
    """

    kind: str
    bootstrap: str
    topic: str
    records: int
    record_bytes: int = 100
    rows: int = 10_000
    batch_bytes: int = LARGE_BATCH_BYTES

    def values(self) -> list[bytes]:
        """As many values as records, made of a thousand different ones: making them is not measured."""
        rng = random.Random(1)
        some = [rng.randbytes(self.record_bytes // 2).hex().encode() for _ in range(1000)]
        return (some * (self.records // len(some) + 1))[: self.records]


@dataclass
class Measurement:
    """What was measured: the run as a whole, or each single send."""

    records: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)


class Stopwatch:
    """Wall and CPU time (all threads of this process) of the code inside the context."""

    def __enter__(self) -> Stopwatch:
        self._cpu, self._started = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._started
        self.cpu_seconds = time.process_time() - self._cpu

    def measurement(self, records: int) -> Measurement:
        return Measurement(records, self.seconds, self.cpu_seconds)


class ClientAdapter(Protocol):
    """A client library at its best settings. Every method is one run in a process of its own."""

    def produce(self, task: Task) -> Measurement:
        """Send every record by itself, each with a callback on delivery; over when all are acknowledged."""
        ...

    def consume(self, task: Task) -> Measurement:
        """Read every record as an object and look at its value."""
        ...

    def produce_table(self, task: Task) -> Measurement:
        """Send an Arrow table of rows, again and again; over when all are acknowledged."""
        ...

    def consume_table(self, task: Task) -> Measurement:
        """Read all records into Arrow tables of about this many rows."""
        ...

    def round_trips(self, task: Task) -> Measurement:
        """Send one record, wait for its acknowledgement, then the next; acks 1, no linger."""
        ...

    def end_to_end(self, task: Task) -> Measurement:
        """Send one record and wait until a consumer beside has it, then the next."""
        ...
