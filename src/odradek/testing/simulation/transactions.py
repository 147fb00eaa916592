"""Transactional producers of protocols v1 and v2 in simulated processes, and readers of committed records."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.control import ControlType, read_control_type
from odradek.records.record import Record, read_records
from odradek.testing.history.operations import (
    Commit,
    Committed,
    End,
    Outcome,
    Poll,
    Read,
    Send,
    TransactionEnd,
)
from odradek.testing.simulation.virtual_time import SimulatedProcess, process_now_ms
from odradek.testing.simulation.workload import Client, Leader, SimulatedReader

TRANSACTION_TIMEOUT_MS = 10_000
GROUP_KEY, TRANSACTION_KEY = 0, 1
FIND_COORDINATOR_VERSION = 3
INIT_PRODUCER_ID_VERSION = 4
ADD_PARTITIONS_VERSION = ADD_OFFSETS_VERSION = 3
OFFSET_FETCH_VERSION = 7
WRITE_MARKERS_VERSION = 2
PRODUCE_VERSIONS = {1: 9, 2: 12}
OFFSET_COMMIT_VERSIONS = {1: 3, 2: 5}
END_VERSIONS = {1: 3, 2: 5}
ATTEMPTS = 30
LATE_SHARE = 0.15
LONGEST_LATENESS_S = 4.0
LONGEST_PAUSE_S = 1.0
"""Transactions are open most of the time: what is late meets an open one."""

_PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


class EpochLost(Exception):
    """The producer cannot continue in its epoch: another InitProducerId ends the open transaction."""


class TransactionalProducer:
    """Transactions over all partitions of a topic, a third of them aborted, with offsets of a group.

    With v1 some sends are late: they arrive when their transaction was aborted already.
    """

    def __init__(self, clients: Sequence[Client], process: SimulatedProcess, protocol: int) -> None:
        """`clients`: one for each partition, in order; `protocol`: 1 or 2."""
        self.name = clients[0].name
        self.group = f"group-of-{self.name}"
        self.ends: dict[int, End] = {}
        """How the transactions that commit an offset ended, by that offset."""
        self._clients = clients
        self._process = process
        self._protocol = protocol
        self._seeded = clients[0].seeded
        self._history = clients[0].history
        self._producer_id = self._epoch = -1
        self._sequences: dict[int, int] = {}
        self._number = 0
        # The marker of the last end, with its epoch, after protocol v2.
        self._last_marker: tuple[int, int, bool] | None = None

    async def run(self) -> None:
        """Do transactions until the task is cancelled."""
        while True:
            await self._initialize()
            with contextlib.suppress(EpochLost):
                while True:
                    await self._do_transaction()
                    await asyncio.sleep(self._seeded.random() ** 2 * LONGEST_PAUSE_S)

    async def committed_offset(self) -> int:
        """The group's committed offset, when no transaction is open any more; recorded, too."""
        topic = self._clients[0].topic
        request = OffsetFetchRequest(
            group_id=self.group,
            topics=[OffsetFetchRequest.Topics(name=topic, partition_indexes=[0])],
            require_stable=True,
        )

        def codes(response: Any) -> list[int]:
            rows = [row for one in response.topics for row in one.partitions]
            return [response.error_code, *(row.error_code for row in rows)]

        response = await self._coordinate(
            self.group, GROUP_KEY, request, OFFSET_FETCH_VERSION, codes, attempts=300
        )
        offset: int = response.topics[0].partitions[0].committed_offset
        self._history.add(Committed(self.name, process_now_ms(), self.group, topic, 0, offset))
        return offset

    async def repeat_marker(self, coordinator_epoch: int) -> bool:
        """Have the marker of the last transaction arrive again, as a network does; False if there is none.

        With protocol v2 it must not end the transaction that is open by now.
        """
        if self._last_marker is None:
            return False
        producer_id, epoch, commits = self._last_marker
        for client in self._clients:
            topic = WriteTxnMarkersRequest.Markers.Topics(
                name=client.topic, partition_indexes=[client.partition]
            )
            marker = WriteTxnMarkersRequest.Markers(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=commits,
                coordinator_epoch=coordinator_epoch,
                transaction_version=2,
                topics=[topic],
            )
            with contextlib.suppress(RequestFailed):
                leader = await client.leader()
                request = WriteTxnMarkersRequest(markers=[marker])
                await client.ask(leader.broker_id, WRITE_MARKERS_VERSION, request)
        return True

    async def _initialize(self) -> None:
        self._producer_id = -1
        while self._producer_id < 0:
            request = InitProducerIdRequest(
                transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
            )
            with contextlib.suppress(EpochLost):
                response = await self._coordinate(
                    self.name, TRANSACTION_KEY, request, INIT_PRODUCER_ID_VERSION, _error_code
                )
                self._producer_id, self._epoch = response.producer_id, response.producer_epoch
                self._sequences.clear()

    async def _do_transaction(self) -> None:
        self._number += 1
        number, name = self._number, f"{self.name}-{self._number}"
        commits = self._seeded.random() < 2 / 3
        end, began_ms = End.ABORTED, process_now_ms()  # until a commit is asked for
        offset = -1
        late: asyncio.Task[None] | None = None
        try:
            for partition in self._seeded.sample(range(len(self._clients)), len(self._clients)):
                await self._join(partition)
                if self._protocol == 1 and self._seeded.random() < LATE_SHARE:
                    late, commits = self._process.create_task(self._send_late(partition, name)), False
                    break
                await self._send(partition, name)
                await asyncio.sleep(self._seeded.random() ** 2 * LONGEST_PAUSE_S)
            if late is None and self._seeded.random() < 0.5:
                await self._commit_offset(number)
                offset = number
            end = End.UNKNOWN if commits else End.ABORTED
            end = await self._end(commits=commits)
        finally:
            self._history.add(TransactionEnd(self.name, process_now_ms(), name, end))
            if offset >= 0:
                self._record_commit(offset, end, began_ms)
        if late is not None:
            await late
            raise EpochLost  # what became of the sequence is not known

    def _record_commit(self, offset: int, end: End, began_ms: int) -> None:
        self.ends[offset] = end
        outcome = {
            End.COMMITTED: Outcome.ACKNOWLEDGED,
            End.ABORTED: Outcome.FAILED,
            End.UNKNOWN: Outcome.UNKNOWN,
        }[end]
        topic, now_ms = self._clients[0].topic, process_now_ms()
        self._history.add(Commit(self.name, began_ms, now_ms, self.group, topic, 0, offset, outcome))

    async def _join(self, partition: int) -> None:
        """Add the partition to the transaction; with v2 the leader does that."""
        if self._protocol == 2:
            return
        topic = AddPartitionsToTxnRequest.V3AndBelowTopics(
            name=self._clients[0].topic, partitions=[partition]
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )

        def codes(response: Any) -> list[int]:
            topics = response.results_by_topic_v3_and_below
            return [row.partition_error_code for one in topics for row in one.results_by_partition]

        await self._coordinate(self.name, TRANSACTION_KEY, request, ADD_PARTITIONS_VERSION, codes)

    async def _send(self, partition: int, transaction: str) -> None:
        """Send a batch until it is acknowledged; EpochLost if that cannot be."""
        client = self._clients[partition]
        values = self._values(partition)
        base_offset = -1
        try:
            for _ in range(ATTEMPTS):
                base_offset = await self._produce_once(client, values)
                if base_offset >= 0:
                    break
                client.forget_leader()
                await asyncio.sleep(0.05 + self._seeded.random() / 10)
            else:
                raise EpochLost
        finally:
            self._record(partition, values, transaction, base_offset)
        self._sequences[partition] = self._sequences.get(partition, 0) + len(values)

    async def _send_late(self, partition: int, transaction: str) -> None:
        """Send a batch once, a while later, as a network does that has held it back."""
        client = self._clients[partition]
        values = self._values(partition)
        base_offset = -1
        request_time_s = self._seeded.random() * LONGEST_LATENESS_S
        try:
            request = self._produce_request(partition, values)
            await asyncio.sleep(request_time_s)
            base_offset = await self._produce_once(client, values, request)
        except EpochLost:
            pass
        finally:
            self._record(partition, values, transaction, base_offset)

    def _values(self, partition: int) -> list[str]:
        return [
            f"{self.name}:{partition}:{self._number}.{index}" for index in range(self._seeded.randint(1, 3))
        ]

    async def _produce_once(
        self, client: Client, values: Sequence[str], request: ProduceRequest | None = None
    ) -> int:
        """The base offset, -1 if it may be tried again; EpochLost for an error that does not pass."""
        leader = await client.leader()
        request = request or self._produce_request(client.partition, values)
        try:
            response = await client.ask(leader.broker_id, PRODUCE_VERSIONS[self._protocol], request)
        except RequestFailed:
            return -1
        row = response.responses[0].partition_responses[0]
        if row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return int(row.base_offset)
        if row.error_code in _PASSING:
            return -1
        raise EpochLost

    def _produce_request(self, partition: int, values: Sequence[str]) -> ProduceRequest:
        now_ms = process_now_ms()
        batch = build_batch(
            [Record(index, now_ms, None, value.encode(), ()) for index, value in enumerate(values)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(partition, 0),
            is_transactional=True,
        )
        row = ProduceRequest.TopicData
        data = row.PartitionData(index=partition, records=bytes(batch))
        return ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=1500,
            topic_data=[row(name=self._clients[0].topic, partition_data=[data])],
        )

    def _record(self, partition: int, values: Sequence[str], transaction: str, base_offset: int) -> None:
        outcome = Outcome.UNKNOWN if base_offset < 0 else Outcome.ACKNOWLEDGED
        for index, value in enumerate(values):
            offset = base_offset + index if base_offset >= 0 else -1
            number = self._number * 10 + index
            send = Send(
                self.name,
                process_now_ms(),
                self._clients[partition].topic,
                partition,
                number,
                value,
                outcome,
                offset,
                transaction=transaction,
            )
            self._history.add(send)

    async def _commit_offset(self, offset: int) -> None:
        if self._protocol == 1:
            add = AddOffsetsToTxnRequest(
                transactional_id=self.name,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                group_id=self.group,
            )
            await self._coordinate(self.name, TRANSACTION_KEY, add, ADD_OFFSETS_VERSION, _error_code)
        row = TxnOffsetCommitRequest.Topics.Partitions(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequest.Topics(name=self._clients[0].topic, partitions=[row])],
        )

        def codes(response: Any) -> list[int]:
            return [one.error_code for topic in response.topics for one in topic.partitions]

        await self._coordinate(self.group, GROUP_KEY, request, OFFSET_COMMIT_VERSIONS[self._protocol], codes)

    async def _end(self, *, commits: bool) -> End:
        """How the transaction ended; EpochLost if that is not known, or no other may follow."""
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commits,
        )
        version = END_VERSIONS[self._protocol]
        response = await self._coordinate(self.name, TRANSACTION_KEY, request, version, _error_code)
        if self._protocol == 2:
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()
            self._last_marker = (self._producer_id, self._epoch, commits)
        return End.COMMITTED if commits else End.ABORTED

    async def _coordinate(
        self,
        key: str,
        key_type: int,
        request: Any,
        version: int,
        codes: Any,
        *,
        attempts: int = ATTEMPTS,
    ) -> Any:
        """The response of the coordinator without an error; EpochLost after an error that does not pass."""
        client = self._clients[0]
        for _ in range(attempts):
            with contextlib.suppress(RequestFailed):
                found = await client.ask(
                    self._seeded.choice(client.broker_ids),
                    FIND_COORDINATOR_VERSION,
                    FindCoordinatorRequest(key=key, key_type=key_type),
                )
                if found.error_code == ErrorCode.NONE:
                    response = await client.ask(found.node_id, version, request)
                    errors = {code for code in codes(response) if code != ErrorCode.NONE}
                    if not errors:
                        return response
                    if not errors <= _PASSING:
                        raise EpochLost
            await asyncio.sleep(0.05 + self._seeded.random() / 10)
        raise EpochLost


def _error_code(response: Any) -> list[int]:
    return [response.error_code]


class CommittedReader(SimulatedReader):
    """Reads with isolation level read_committed: leaves out what the aborted transactions wrote."""

    def _request(self, leader: Leader) -> FetchRequest:
        request = super()._request(leader)
        request.isolation_level = 1
        return request

    def _take(self, row: FetchResponse.Responses.Partitions) -> bool:
        begins = sorted((one.first_offset, one.producer_id) for one in row.aborted_transactions or ())
        aborted: set[int] = set()
        reads: list[Read] = []
        payload = bytes(row.records or b"")
        before = self.position
        for position, header in iterate_headers(payload):
            while begins and begins[0][0] <= header.last_offset:
                aborted.add(begins.pop(0)[1])
            is_left_out = header.is_transactional and header.producer_id in aborted
            records = read_records(payload, position, max_bytes=1 << 20)
            if header.is_control:
                if read_control_type(records[0].key) is ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not is_left_out:
                reads += [
                    Read(self.topic, self.partition, record.offset, record.value.decode())
                    for record in records
                    if record.offset >= self.position and record.value is not None
                ]
            self.position = max(self.position, header.last_offset + 1)
        if reads:
            self.history.add(Poll(self.name, process_now_ms(), 0, tuple(reads), read_committed=True))
        return self.position > before
