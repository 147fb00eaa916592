"""A transactional producer that speaks single requests, so that a test can stop between any two of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from broker.wire import ClosedByBroker, WireClient, a_batch
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from odradek.protocol.structs import Message

PATIENCE_SECONDS = 60
TRANSACTION = 1


class Brokers(Protocol):
    """Where the brokers are; a Cluster, or what another process was told of it."""

    @property
    def broker_ids(self) -> Sequence[int]: ...

    def address(self, broker_id: int) -> str: ...


class TransactionClient:
    """Requests go to the present coordinator or leader, and again until they succeed or are refused.

    `is_v2`: the leaders add the partitions, and each end returns the next epoch.
    """

    def __init__(
        self, cluster: Brokers, transactional_id: str, *, is_v2: bool, timeout_ms: int = 60_000
    ) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.is_v2 = is_v2
        self.timeout_ms = timeout_ms
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}
        self.last_offset = -1
        """The offset of the last batch that was acknowledged."""

    # Where requests go

    def _ask(self, broker_id: int, api_key: ApiKey, version: int, request: Message) -> Any:
        with WireClient(self.cluster.address(broker_id), PATIENCE_SECONDS) as client:
            return client.ask(api_key, version, request)

    def _anywhere(self, api_key: ApiKey, version: int, request: Message) -> Any:
        for broker_id in self.cluster.broker_ids:
            try:
                return self._ask(broker_id, api_key, version, request)
            except (OSError, ClosedByBroker):
                continue
        raise ConnectionError("no broker answers")

    def coordinator(self) -> int:
        """The broker id of the coordinator; -1 if there is none now."""
        request = FindCoordinatorRequest(key=self.transactional_id, key_type=TRANSACTION)
        found = self._anywhere(ApiKey.FIND_COORDINATOR, 2, request)
        return -1 if found.error_code else int(found.node_id)

    def leader(self, topic: str, partition: int) -> int:
        """The broker id of a leader; -1 if there is none now."""
        request = MetadataRequest(topics=[MetadataRequest.Topics(name=topic)])
        (described,) = self._anywhere(ApiKey.METADATA, 12, request).topics
        for row in described.partitions:
            if row.partition_index == partition:
                return int(row.leader_id)
        return -1

    def _until_answered(
        self,
        target: Callable[[], int],
        api_key: ApiKey,
        version: int,
        request: Message,
        code_of: Callable[[Any], int],
    ) -> tuple[Any, ErrorCode]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                broker_id = target()
                if broker_id >= 0:
                    answer = self._ask(broker_id, api_key, version, request)
                    code = ErrorCode(code_of(answer))
                    if not code.is_retriable:
                        return answer, code
            except (OSError, ClosedByBroker):
                pass
            assert time.monotonic() < deadline, f"{api_key.name} gets no answer"
            time.sleep(0.02)

    # What a producer does

    def init(self) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms
        )
        answer, code = self._until_answered(
            self.coordinator, ApiKey.INIT_PRODUCER_ID, 5, request, lambda answer: answer.error_code
        )
        self._next_epoch(answer.producer_id, answer.producer_epoch)
        return code

    def _next_epoch(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def add(self, topic: str, *partitions: int) -> ErrorCode:
        """Only v1: add partitions."""
        topics = AddPartitionsToTxnRequest.V3AndBelowTopics(name=topic, partitions=list(partitions))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topics],
        )

        def code_of(answer: Any) -> int:
            rows = answer.results_by_topic_v3_and_below[0].results_by_partition
            return max(int(row.partition_error_code) for row in rows)

        _, code = self._until_answered(self.coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, code_of)
        return code

    def produce(self, topic: str, partition: int, value: bytes) -> ErrorCode:
        sequence = self.sequences.get((topic, partition), 0)
        batch = a_batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        row = ProduceRequest.TopicData
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[row(name=topic, partition_data=[row.PartitionData(index=partition, records=batch)])],
        )
        answer, code = self._until_answered(
            lambda: self.leader(topic, partition),
            ApiKey.PRODUCE,
            12 if self.is_v2 else 11,
            request,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
        if code is ErrorCode.NONE:
            self.sequences[topic, partition] = sequence + 1
            self.last_offset = answer.responses[0].partition_responses[0].base_offset
        return code

    def write(self, topic: str, partitions: range, value: bytes) -> None:
        """A value in each partition, as part of the transaction."""
        if not self.is_v2:
            assert self.add(topic, *partitions) is ErrorCode.NONE
        for partition in partitions:
            assert self.produce(topic, partition, value) is ErrorCode.NONE

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    @property
    def end_version(self) -> int:
        return 5 if self.is_v2 else 4

    def end(self, *, commit: bool) -> ErrorCode:
        answer, code = self._until_answered(
            self.coordinator,
            ApiKey.END_TXN,
            self.end_version,
            self.end_request(commit=commit),
            lambda answer: answer.error_code,
        )
        if code is ErrorCode.NONE and self.is_v2:
            self._next_epoch(answer.producer_id, answer.producer_epoch)
        return code

    def state(self) -> str:
        """The name of the state, as the coordinator has it."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        answer, _ = self._until_answered(
            self.coordinator,
            ApiKey.DESCRIBE_TRANSACTIONS,
            0,
            request,
            lambda answer: answer.transaction_states[0].error_code,
        )
        return str(answer.transaction_states[0].transaction_state)

    def wait_for_state(self, *names: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (state := self.state()) not in names:
            assert time.monotonic() < deadline, f"{self.transactional_id} remains in {state}"
            time.sleep(0.02)
        return state


class ClientWithOffsets(TransactionClient):
    """Adds an offset of a group to the transaction."""

    def __init__(self, cluster: Brokers, transactional_id: str, group: str, **given: Any) -> None:
        super().__init__(cluster, transactional_id, **given)
        self.group = group

    def group_coordinator(self) -> int:
        request = FindCoordinatorRequest(key=self.group, key_type=1 - TRANSACTION)
        found = self._anywhere(ApiKey.FIND_COORDINATOR, 2, request)
        return -1 if found.error_code else int(found.node_id)

    def _producer(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "group_id": self.group,
        }

    def add_offsets(self) -> ErrorCode:
        request = AddOffsetsToTxnRequest(**self._producer())
        _, code = self._until_answered(
            self.coordinator, ApiKey.ADD_OFFSETS_TO_TXN, 3, request, lambda answer: answer.error_code
        )
        return code

    def commit_offset(self, topic: str, offset: int) -> ErrorCode:
        row = TxnOffsetCommitRequest.Topics
        partition = row.Partitions(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(topics=[row(name=topic, partitions=[partition])], **self._producer())
        _, code = self._until_answered(
            self.group_coordinator,
            ApiKey.TXN_OFFSET_COMMIT,
            5 if self.is_v2 else 4,
            request,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
        return code
