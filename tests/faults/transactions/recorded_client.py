"""A client that does the transactions of a job request by request, and records what it was answered."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from faults.cluster.values import encode_value
from faults.transaction_client import ClientWithOffsets
from faults.transactions.jobs import DONE, GROUP, PARTITIONS, TOPIC, Job
from odradek.common.error_codes import ErrorCode
from odradek.testing.history.operations import Commit, End, Outcome, Send, TransactionEnd
from odradek.testing.history.recorder import Recorder, now_ms

Tell = Callable[[str], object]
OFFSETS_OF_A_JOB = 10


class Refused(Exception):
    """A step of a transaction was refused, which is the end of it."""


class RecordedClient:
    """`tell` gets the name of each step of the second transaction before it is taken."""

    def __init__(self, job: Job, recorder: Recorder, tell: Tell) -> None:
        self._job = job
        self._recorder = recorder
        self._tell = tell
        self._client = ClientWithOffsets(
            job, job.transactional_id, GROUP, is_v2=job.is_v2, timeout_ms=job.timeout_ms
        )
        self._number = 0

    def run(self) -> None:
        self._tell("InitProducerId")
        self._init()
        self._transact(0, commits=True)
        self._transact(1, commits=self._job.commits, tell=self._tell)
        self._transact(2, commits=True)
        self._tell(DONE)

    def _init(self) -> None:
        code = self._client.init()
        assert code is ErrorCode.NONE, code

    def _transact(self, number: int, *, commits: bool, tell: Tell = lambda _: None) -> None:
        name = f"{self._job.prefix}{number}"
        try:
            self._fill(name, self._job.number * OFFSETS_OF_A_JOB + number, tell)
        except Refused:
            # It has timed out: what initialization leaves behind is aborted.
            self._init()
            self._end(name, End.ABORTED)
            return
        tell("EndTxn")
        code = self._client.end(commit=commits)
        if code is ErrorCode.NONE:
            self._end(name, End.COMMITTED if commits else End.ABORTED)
        else:
            self._init()
            self._end(name, End.UNKNOWN)

    def _end(self, name: str, end: End) -> None:
        self._recorder.record(TransactionEnd(self._job.transactional_id, now_ms(), name, end))

    def _fill(self, name: str, offset: int, tell: Tell) -> None:
        """The records and the offset of a transaction."""
        client = self._client
        if not client.is_v2:
            tell("AddPartitionsToTxn")
            self._require(client.add(TOPIC, *range(PARTITIONS)))
        for step in ("first Produce", "second Produce"):
            tell(step)
            for partition in range(PARTITIONS):
                self._send(name, partition)
        if not client.is_v2:
            tell("AddOffsetsToTxn")
            self._require(client.add_offsets())
        tell("TxnOffsetCommit")
        began_ms = now_ms()
        code = client.commit_offset(TOPIC, offset)
        outcome = Outcome.ACKNOWLEDGED if code is ErrorCode.NONE else Outcome.UNKNOWN
        worker = self._job.transactional_id
        self._recorder.record(
            Commit(worker, began_ms, now_ms(), GROUP, TOPIC, 0, offset, outcome, transaction=name)
        )
        self._require(code)

    def _send(self, name: str, partition: int) -> None:
        job, self._number = self._job, self._number + 1
        value = f"{job.prefix}{self._number}"
        code = self._client.produce(TOPIC, partition, encode_value(value, 0))
        is_written = code is ErrorCode.NONE
        outcome = Outcome.ACKNOWLEDGED if is_written else Outcome.UNKNOWN
        offset = self._client.last_offset if is_written else -1
        number = job.number * 1000 + self._number
        worker = job.transactional_id
        self._recorder.record(
            Send(worker, now_ms(), TOPIC, partition, number, value, outcome, offset, transaction=name)
        )
        self._require(code)

    def _require(self, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            raise Refused(code.name)


def run_job(job: Job, tell: Tell) -> None:
    """Do a job; what it records outlives the process."""
    with Recorder(Path(job.directory), f"client-{job.number:05}") as recorder:
        RecordedClient(job, recorder, tell).run()
        while job.is_killed:
            signal.pause()
