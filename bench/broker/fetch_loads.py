"""Fetch requests of a consumer that reads on and on, as frames, for `request_cost.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from odradek.broker.server import BrokerServer
from odradek.log.partition.leader_batches import Origin
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.records.builder import build_batch_from_columns
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker

LIBRDKAFKA_VERSION, JAVA_VERSION = 16, 18
LOG_BYTES = 32 << 20
MAX_BATCHES = 20_000
NO_SESSION_EPOCH = -1


@dataclass(frozen=True)
class FetchLoad:
    """One request after the other, each for the next `max_bytes` of a log of such batches.

    Where a batch is a record, they ask for the last one, as a consumer of a slow producer does.
    """

    name: str
    topic: str
    records_per_batch: int
    record_bytes: int
    max_bytes: int
    version: int = LIBRDKAFKA_VERSION
    aborted_every: int = 0
    """Each so many-th batch is a transaction of its own that was aborted; none if 0."""

    @property
    def has_session(self) -> bool:
        """As Java's consumer has one, and librdkafka's has none."""
        return self.version == JAVA_VERSION


FETCH_LOADS = (
    FetchLoad("1 record of 100 B, the last", "single", 1, 100, 1 << 20),
    FetchLoad("64 KiB", "batches", 150, 100, 64 << 10),
    FetchLoad("1 MiB", "batches", 150, 100, 1 << 20),
    FetchLoad("1 record of 100 B, the last, in a session", "single", 1, 100, 1 << 20, JAVA_VERSION),
    FetchLoad("64 KiB, in a session", "batches", 150, 100, 64 << 10, JAVA_VERSION),
    FetchLoad("1 MiB, in a session", "batches", 150, 100, 1 << 20, JAVA_VERSION),
)

Ask = Callable[[int, memoryview], FetchResponse]
"""Hands a frame of that version to the broker; its answer."""


class Reader:
    """Frames for a log that it fills itself, from its beginning on and again when it has come to its end."""

    def __init__(self, server: BrokerServer, load: FetchLoad) -> None:
        self.load = load
        self._partition = server.services.replicas.get(load.topic, 0)
        self._topic_id = self._partition.topic_id
        self._session_id = 0
        self._epochs: Iterator[int] = count(1)
        self._fill()

    def _fill(self) -> None:
        load, now_ms = self.load, time.time_ns() // 1_000_000
        values: list[bytes | None] = [bytes(load.record_bytes)] * load.records_per_batch
        keys: list[bytes | None] = [None] * load.records_per_batch
        times = [now_ms] * load.records_per_batch
        batch = bytes(build_batch_from_columns(keys, values, times))
        self.batch_count = min(LOG_BYTES // len(batch), MAX_BATCHES)
        self.batches_per_fetch = max(load.max_bytes // len(batch), 1)
        appended = 0
        while self._partition.log.log_end_offset < self.batch_count * load.records_per_batch:
            appended += 1
            if not load.aborted_every or appended % load.aborted_every != 1:
                self._partition.append(memoryview(bytearray(batch)), 1, now_ms)
                continue
            transaction = {"producer_id": appended, "producer_epoch": 0, "base_sequence": 0}
            aborted = build_batch_from_columns(keys, values, times, **transaction, is_transactional=True)
            self._partition.append(memoryview(aborted), 1, now_ms)
            marker = build_end_transaction_marker(
                EndTransactionMarker(ControlType.ABORT, 0),
                producer_id=appended,
                producer_epoch=0,
                timestamp_ms=now_ms,
            )
            self._partition.append(marker, 1, now_ms, Origin.COORDINATOR)

    def begin(self, ask: Ask) -> None:
        """Have a session, if this client has one; its first answer has records, or there is no figure.

        All of the log is brought into the page cache first: only such fetches are answered at once.
        """
        for path in Path(self._partition.log.directory.path).glob("*.log"):
            path.read_bytes()
        request = self._request(0, 0 if self.load.has_session else NO_SESSION_EPOCH)
        response = ask(self.load.version, self._frame(request))
        row = response.responses[0].partitions[0]
        assert row.error_code == 0
        assert row.records
        assert bool(row.aborted_transactions) == bool(self.load.aborted_every)
        self._session_id = response.session_id
        self._epochs = count(1)

    def frames(self, number: int) -> Iterator[memoryview]:
        """Send fetch requests, each from where the previous one ended."""
        made = []
        for fetch in range(1, number + 1):
            batch = fetch * self.batches_per_fetch % (self.batch_count - self.batches_per_fetch)
            if self.load.records_per_batch == 1:
                batch = self.batch_count - 1
            epoch = next(self._epochs) if self.load.has_session else NO_SESSION_EPOCH
            made.append(self._frame(self._request(batch * self.load.records_per_batch, epoch)))
        return iter(made)

    def _request(self, offset: int, session_epoch: int) -> FetchRequest:
        topic = FetchRequest.Topics(topic_id=self._topic_id)
        topic.partitions = [
            topic.Partitions(
                partition=0,
                current_leader_epoch=0,
                fetch_offset=offset,
                partition_max_bytes=self.load.max_bytes,
            )
        ]
        return FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            isolation_level=0 if self.load.has_session else 1,
            session_id=self._session_id,
            session_epoch=session_epoch,
            topics=[topic],
        )

    def _frame(self, request: FetchRequest) -> memoryview:
        parts = encode_request(ApiKey.FETCH, self.load.version, 1, "consumer", request)
        return memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))
