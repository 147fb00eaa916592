"""Dialogues of transactions: each is held with any broker, and notes what was answered.

What no two brokers have in common (producer ids, times) is left out. Errors on which every client simply
tries again are not noted, for how long a broker takes is nobody's promise, unless `once` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from broker.wire import WireClient, a_batch
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DeleteGroupsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from odradek.protocol.structs import Message

PATIENCE_S = 60
TOPIC, GROUP = "dialogue", "g"
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
Codes = dict[tuple[str, int], str]


class Dialogue:
    """One conversation with one broker about one transactional id."""

    def __init__(self, address: str, name: str) -> None:
        self.address = address
        self.name = name
        self.client = WireClient(address, PATIENCE_S)
        self.lines: list[tuple[str, Any]] = []
        self.producer_id, self.epoch = -1, -1
        for key_type, key in ((0, GROUP), (1, name)):
            request = FindCoordinatorRequest(key=key, key_type=key_type)
            self._ask(ApiKey.FIND_COORDINATOR, 2, request, lambda answer: answer.error_code)

    def note(self, step: str, answer: Any) -> None:
        self.lines.append((f"{len(self.lines)} {step}", answer))

    def _ask(
        self,
        api_key: ApiKey,
        version: int,
        request: Message,
        code_of: Callable[[Any], int] = lambda _: 0,
        *,
        once: bool = False,
    ) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.client.ask(api_key, version, request)
            if once or code_of(answer) not in AGAIN:
                return answer
            assert time.monotonic() < deadline, f"{api_key.name}: {ErrorCode(code_of(answer)).name}"
            time.sleep(0.05)

    # Requests: what is not given is what the producer has

    def init(
        self, *, once: bool = False, version: int = 5, timeout_ms: int = 60_000, **expected: int
    ) -> tuple[str, int]:
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms, **expected
        )
        answer = self._ask(
            ApiKey.INIT_PRODUCER_ID, version, request, lambda answer: answer.error_code, once=once
        )
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code).name, answer.producer_epoch

    def _producer(self, given: dict[str, Any]) -> dict[str, Any]:
        mine = {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }
        return {name: given.pop(name, value) for name, value in mine.items()}

    def add(self, *partitions: tuple[str, int], version: int = 3, **given: Any) -> Codes:
        producer = {f"v3_and_below_{name}": value for name, value in self._producer(given).items()}
        topics = [
            AddPartitionsToTxnRequest.V3AndBelowTopics(name=topic, partitions=[index])
            for topic, index in partitions or [(TOPIC, 0)]
        ]
        request = AddPartitionsToTxnRequest(v3_and_below_topics=topics, **producer)

        def code_of(answer: Any) -> int:
            rows = answer.results_by_topic_v3_and_below
            return int(rows[0].results_by_partition[0].partition_error_code)

        answer = self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request, code_of)
        return partition_codes(answer.results_by_topic_v3_and_below)

    def verify(self, *partitions: int, version: int = 5, **given: Any) -> tuple[str, Codes]:
        row = AddPartitionsToTxnRequest.Transactions
        topics = [row.Topics(name=TOPIC, partitions=list(partitions or [0]))]
        asked = row(verify_only=True, topics=topics, **self._producer(given))
        request = AddPartitionsToTxnRequest(transactions=[asked])
        answer = self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        (result,) = answer.results_by_transaction
        return ErrorCode(answer.error_code).name, partition_codes(result.topic_results)

    def add_offsets(self, *, version: int = 4, **given: Any) -> str:
        request = AddOffsetsToTxnRequest(group_id=GROUP, **self._producer(given))
        answer = self._ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request, lambda answer: answer.error_code)
        return ErrorCode(answer.error_code).name

    def commit_offset(
        self,
        *,
        version: int = 5,
        group: str = GROUP,
        topic: str = TOPIC,
        offset: int = 5,
        partition: int = 0,
        **given: Any,
    ) -> str:
        row = TxnOffsetCommitRequest.Topics.Partitions(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            group_id=group,
            topics=[TxnOffsetCommitRequest.Topics(name=topic, partitions=[row])],
            **self._producer(given),
            **given,
        )

        def code_of(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return ErrorCode(code_of(self._ask(ApiKey.TXN_OFFSET_COMMIT, version, request, code_of))).name

    # Offsets outside of transactions

    def commit_plain_offset(self, offset: int, group: str) -> str:
        row = OffsetCommitRequest.Topics
        partition = row.Partitions(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(group_id=group, topics=[row(name=TOPIC, partitions=[partition])])
        answer = self._ask(ApiKey.OFFSET_COMMIT, 8, request)
        return ErrorCode(answer.topics[0].partitions[0].error_code).name

    def fetched_offset(self, group: str, *, stable: bool = False, partition: int = 0) -> tuple[str, int]:
        """`stable`: waits until no transaction is about to change it."""
        topic = OffsetFetchRequest.Topics(name=TOPIC, partition_indexes=[partition])
        request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=stable)

        def row_of(answer: Any) -> Any:
            return answer.topics[0].partitions[0]

        answer = self._ask(ApiKey.OFFSET_FETCH, 7, request, lambda answer: int(row_of(answer).error_code))
        return ErrorCode(row_of(answer).error_code).name, row_of(answer).committed_offset

    def is_pending_offset(self, group: str) -> bool:
        topic = OffsetFetchRequest.Topics(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
        answer = self._ask(ApiKey.OFFSET_FETCH, 7, request)
        return bool(answer.topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT)

    def delete_offset(self, group: str) -> list[str]:
        row = OffsetDeleteRequest.Topics
        topic = row(name=TOPIC, partitions=[row.Partitions(partition_index=0)])
        answer = self._ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group, topics=[topic]))
        codes = [answer.error_code, *(one.error_code for one in answer.topics[0].partitions)]
        return [ErrorCode(code).name for code in codes]

    def delete_group(self, group: str) -> str:
        answer = self._ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[group]))
        return ErrorCode(answer.results[0].error_code).name

    def produce(
        self, sequence: int, *, version: int = 11, partition: int = 0, plain: bool = False, **given: Any
    ) -> str:
        producer = self._producer(given)
        transactional_id = producer.pop("transactional_id")
        batch = a_batch(b"x", base_sequence=sequence, is_transactional=not plain, **producer)
        row = ProduceRequest.TopicData
        rows = [row(name=TOPIC, partition_data=[row.PartitionData(index=partition, records=batch)])]
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=5000, topic_data=rows)

        def code_of(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        return ErrorCode(code_of(self._ask(ApiKey.PRODUCE, version, request, code_of))).name

    def produce_of_two(self, *given: dict[str, Any], version: int = 11) -> list[str]:
        """A batch for each of the first partitions, in one request, each with what is given for it."""
        row = ProduceRequest.TopicData
        rows = []
        for index, one in enumerate(given):
            producer = self._producer(dict(one))
            del producer["transactional_id"]
            batch = a_batch(b"x", base_sequence=0, is_transactional=True, **producer)
            rows.append(row.PartitionData(index=index, records=batch))
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=5000,
            topic_data=[row(name=TOPIC, partition_data=rows)],
        )

        def code_of(answer: Any) -> int:
            return max(int(one.error_code) for one in answer.responses[0].partition_responses)

        answer = self._ask(ApiKey.PRODUCE, version, request, code_of)
        return [ErrorCode(one.error_code).name for one in answer.responses[0].partition_responses]

    def end(self, *, commit: bool = True, version: int = 4, **given: Any) -> tuple[str, bool, int]:
        producer = self._producer(given)
        answer = self._ask(
            ApiKey.END_TXN,
            version,
            EndTxnRequest(committed=commit, **producer),
            lambda answer: answer.error_code,
        )
        has_same_id = answer.producer_id == producer["producer_id"]
        return ErrorCode(answer.error_code).name, has_same_id, answer.producer_epoch

    def write_marker(
        self, epoch: int, coordinator_epoch: int, *, partition: tuple[str, int] = (TOPIC, 2), version: int = 2
    ) -> Codes:
        row = WriteTxnMarkersRequest.Markers
        marker = row(
            producer_id=777_777,
            producer_epoch=epoch,
            transaction_result=True,
            coordinator_epoch=coordinator_epoch,
            topics=[row.Topics(name=partition[0], partition_indexes=[partition[1]])],
        )
        answer = self._ask(ApiKey.WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest(markers=[marker]))
        return {
            (topic.name, one.partition_index): ErrorCode(one.error_code).name
            for topic in answer.markers[0].topics
            for one in topic.partitions
        }

    def described(self, name: str | None = None) -> tuple[Any, ...]:
        request = DescribeTransactionsRequest(transactional_ids=[self.name if name is None else name])
        (state,) = self._ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
        return (
            ErrorCode(state.error_code).name,
            state.transaction_state,
            state.transaction_timeout_ms,
            state.producer_epoch,
            state.transaction_start_time_ms > 0,
            sorted((topic.topic, sorted(topic.partitions)) for topic in state.topics),
        )

    def settled(self) -> tuple[Any, ...]:
        """The state once the markers are written."""
        deadline = time.monotonic() + PATIENCE_S
        while (described := self.described())[1].startswith("Prepare"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return described

    def listed(self, version: int = 2, **filters: Any) -> tuple[Any, ...]:
        """Only ids that begin with the dialogue's name."""
        answer = self._ask(ApiKey.LIST_TRANSACTIONS, version, ListTransactionsRequest(**filters))
        rows = [
            (one.transactional_id, one.transaction_state)
            for one in answer.transaction_states
            if one.transactional_id.startswith(self.name)
        ]
        return ErrorCode(answer.error_code).name, sorted(answer.unknown_state_filters), sorted(rows)


def partition_codes(topics: Any) -> Codes:
    return {
        (topic.name, row.partition_index): ErrorCode(row.partition_error_code).name
        for topic in topics
        for row in topic.results_by_partition
    }


def initialization(dialogue: Dialogue) -> None:
    note, init = dialogue.note, dialogue.init
    for timeout_ms in (900_001, 0, -1):
        note(f"time-out {timeout_ms}", init(timeout_ms=timeout_ms))
    note("only an id", init(producer_id=5))
    note("only an epoch", init(producer_epoch=5))
    note("first", init())
    note("second", init())
    mine = {"producer_id": dialogue.producer_id}
    note("go on", init(**mine, producer_epoch=1))
    note("go on again", init(**mine, producer_epoch=1))
    note("go on from too far back", init(**mine, producer_epoch=0))
    note("the same, before KIP-588", init(**mine, producer_epoch=0, version=3))
    note("another id", init(producer_id=dialogue.producer_id + 1, producer_epoch=2))
    note("described", dialogue.described())
    note("an unknown id described", dialogue.described("absent"))
    note("an empty id described", dialogue.described(""))
    dialogue.name = ""
    note("an empty id", init())


def wrong_producers(dialogue: Dialogue) -> None:
    note = dialogue.note
    dialogue.init()
    dialogue.init()
    other = dialogue.producer_id + 1
    wrong: dict[str, dict[str, Any]] = {
        "an older epoch": {"producer_epoch": 0},
        "a newer epoch": {"producer_epoch": 9},
        "another producer id": {"producer_id": other},
        "an unknown transactional id": {"transactional_id": "absent"},
    }
    for what, given in wrong.items():
        note(f"add: {what}", dialogue.add(**given))
        note(f"verify: {what}", dialogue.verify(**given))
        note(f"add offsets: {what}", dialogue.add_offsets(**given))
        note(f"commit offsets: {what}", dialogue.commit_offset(version=3, **given))
        note(f"produce: {what}", dialogue.produce(0, **given))
        for version in (4, 5):
            note(f"end v{version}: {what}", dialogue.end(version=version, **given))
    older = {"producer_epoch": 0, "version": 1}
    note("add, before KIP-588", dialogue.add(**older))
    note("add offsets, before KIP-588", dialogue.add_offsets(**older))
    note("end, before KIP-588", dialogue.end(**older))
    for version in (4, 5):
        note(f"end v{version}: empty id", dialogue.end(version=version, transactional_id=""))
    note("add: empty id", dialogue.add(transactional_id=""))
    note("verify: empty id", dialogue.verify(transactional_id=""))


def partitions(dialogue: Dialogue) -> None:
    note = dialogue.note
    dialogue.init()
    note("unknown topic", dialogue.add(("absent", 0), (TOPIC, 0)))
    note("unknown partition", dialogue.add((TOPIC, 7), (TOPIC, 1)))
    note("internal topic", dialogue.add(("__consumer_offsets", 0)))
    note("described", dialogue.described())
    note("nothing to commit", dialogue.end())
    note("nothing to abort", dialogue.end(commit=False))
    note("produce v11, not added", dialogue.produce(0))
    note("produce v9, not added", dialogue.produce(0, version=9))
    note("add", dialogue.add((TOPIC, 0), (TOPIC, 1)))
    note("described", dialogue.described())
    note("verify", dialogue.verify(0, 2))
    note("verify v4", dialogue.verify(0, version=4))


def a_v1_transaction(dialogue: Dialogue) -> None:
    note = dialogue.note
    dialogue.init()
    dialogue.add((TOPIC, 0), (TOPIC, 1))
    for what, sequence in (("first", 0), ("second", 1), ("again", 1), ("gap", 5)):
        note(what, dialogue.produce(sequence))
    note("plain", dialogue.produce(2, plain=True))
    other_id, other_epoch = {"producer_id": dialogue.producer_id + 1}, {"producer_epoch": dialogue.epoch + 1}
    note("of two producers", dialogue.produce_of_two({}, other_id))
    note("of two epochs", dialogue.produce_of_two({}, other_epoch))
    note("unknown producer, later sequence", dialogue.produce(5, partition=1))
    note("offsets v3, not added", dialogue.commit_offset(version=3))
    note("offsets v4, not added", dialogue.commit_offset(version=4))
    note("add offsets", dialogue.add_offsets())
    note("offsets", dialogue.commit_offset(version=3))
    note("offsets: generation", dialogue.commit_offset(version=3, generation_id=5))
    note("offsets: member", dialogue.commit_offset(version=3, member_id="m"))
    note("offsets: no group", dialogue.commit_offset(version=3, generation_id=5, group="other"))
    note("offsets: no topic", dialogue.commit_offset(version=3, topic="absent"))
    note("commit", dialogue.end())
    note("settled", dialogue.settled())
    note("commit again", dialogue.end())
    note("abort", dialogue.end(commit=False))
    dialogue.add()
    note("next", dialogue.produce(2))
    note("abort", dialogue.end(commit=False))
    note("settled", dialogue.settled())
    note("commit", dialogue.end())
    dialogue.add()
    note("open", dialogue.produce(3))
    zombie = {"producer_id": dialogue.producer_id, "producer_epoch": dialogue.epoch}
    note("fence", dialogue.init(once=True))
    note("settled", dialogue.settled())
    note("begin again", dialogue.init())
    for version in (11, 12):
        note(f"zombie produces v{version}", dialogue.produce(4, version=version, **zombie))
    note("zombie adds", dialogue.add(**zombie))
    for version in (3, 5):
        note(f"zombie commits offsets v{version}", dialogue.commit_offset(version=version, **zombie))


def v2_transactions(dialogue: Dialogue) -> None:
    note = dialogue.note

    def end(what: str, *, commit: bool = True, back: int = 0) -> None:
        note(what, dialogue.end(commit=commit, version=5, producer_epoch=dialogue.epoch - back))

    dialogue.init()
    for sequence, partition in ((0, 0), (1, 0), (0, 1)):
        note(f"produce {sequence}", dialogue.produce(sequence, partition=partition, version=12))
    note("described", dialogue.described())
    note("offsets", dialogue.commit_offset())
    note("described", dialogue.described())
    end("commit")
    note("settled", dialogue.settled())
    dialogue.epoch += 1
    end("commit again", back=1)
    end("abort instead", commit=False, back=1)
    note("next", dialogue.produce(0, version=12))
    end("late commit", back=1)
    end("late abort", commit=False, back=1)
    end("abort", commit=False)
    note("settled", dialogue.settled())
    dialogue.epoch += 1
    end("abort nothing", commit=False)
    note("settled", dialogue.settled())
    dialogue.epoch += 1
    end("commit nothing")
    note("begins with a later sequence", dialogue.produce(7, version=12))
    note("unknown, with a later sequence", dialogue.produce(3, partition=2, version=12))
    note("described", dialogue.described())
    note("fence", dialogue.init(once=True))
    note("settled", dialogue.settled())
    end("commit what was aborted")
    end("abort what was aborted", commit=False)
    note("begin again", dialogue.init())
    go_on_over_an_open_transaction(dialogue)


def go_on_over_an_open_transaction(dialogue: Dialogue) -> None:
    """InitProducerId of the producer whose transaction is open (KIP-360): it is aborted first."""
    note = dialogue.note
    note("open", dialogue.produce(0, version=12))
    mine = {"producer_id": dialogue.producer_id, "producer_epoch": dialogue.epoch}
    note("go on over it", dialogue.init(once=True, **mine))
    note("settled", dialogue.settled())
    note("go on again", dialogue.init(**mine))
    note("and again", dialogue.init(**mine))
    note("described", dialogue.described())
    note("next", dialogue.produce(0, version=12))
    note("a third time", dialogue.init(once=True, **mine))


def offsets(dialogue: Dialogue) -> None:
    """Commits of one offset by two transactions and by none; the record that is newer counts."""
    note = dialogue.note
    other = Dialogue(dialogue.address, "offsets-2")
    with other.client:
        dialogue.init()
        other.init()

        def end(one: Dialogue, *, commit: bool = True) -> None:
            note("end", one.end(commit=commit, version=5)[0])
            one.settled()
            one.epoch += 1

        def seen(what: str, group: str) -> None:
            note(what, dialogue.fetched_offset(group, stable=True))

        note("in a transaction", dialogue.commit_offset(group="plain", offset=5))
        note("then without one", dialogue.commit_plain_offset(9, "plain"))
        note("pending", dialogue.is_pending_offset("plain"))
        note("before the end", dialogue.fetched_offset("plain"))
        end(dialogue)
        seen("the newer one", "plain")

        for group, is_commit in (("two", True), ("two, one aborted", False)):
            note("first", dialogue.commit_offset(group=group, offset=5))
            note("second", other.commit_offset(group=group, offset=9))
            end(other, commit=is_commit)
            note("pending", dialogue.is_pending_offset(group))
            end(dialogue)
            seen("both ended", group)

        for group, delete in (("deleted", dialogue.delete_group), ("emptied", dialogue.delete_offset)):
            for is_committed in (True, False):
                if is_committed:
                    note("committed", dialogue.commit_plain_offset(1, group))
                note("pending", dialogue.commit_offset(group=group, offset=5))
                note(group, delete(group))
                note("pending", dialogue.is_pending_offset(group))
                end(dialogue)
                seen("after the end", group)


def idempotence(dialogue: Dialogue) -> None:
    given: dict[str, Any] = {"transactional_id": None, "producer_id": 999_999, "plain": True, "partition": 1}
    for epoch, sequence in ((0, 7), (0, 8), (1, 8), (1, 0), (0, 9)):
        code = dialogue.produce(sequence, producer_epoch=epoch, **given)
        dialogue.note(f"epoch {epoch} sequence {sequence}", code)


def markers(dialogue: Dialogue) -> None:
    note, write = dialogue.note, dialogue.write_marker
    note("unknown topic", write(0, 0, partition=("absent", 0)))
    note("unknown partition", write(0, 0, partition=(TOPIC, 9)))
    note("unknown producer", write(5, 3))
    note("older coordinator", write(5, 2))
    note("older epoch", write(4, 3))
    note("again, v1", write(5, 3, version=1))


def lists(dialogue: Dialogue) -> None:
    note, listed = dialogue.note, dialogue.listed
    dialogue.init()
    note("all", listed())
    note("by state", listed(state_filters=["Empty"]))
    note("by another state", listed(state_filters=["Ongoing"]))
    note("by an unknown state", listed(state_filters=["nothing"]))
    note("by two states", listed(state_filters=["nothing", "Empty"]))
    note("by id", listed(producer_id_filters=[dialogue.producer_id]))
    note("by another id", listed(producer_id_filters=[dialogue.producer_id + 1]))
    note("by duration", listed(duration_filter=1_000_000))
    note("by pattern", listed(transactional_id_pattern="lis.*"))
    note("by another pattern", listed(transactional_id_pattern="lis"))
    note("by no pattern", listed(transactional_id_pattern="["))
    note("v0", listed(version=0))


DIALOGUES: dict[str, Callable[[Dialogue], None]] = {
    function.__name__: function
    for function in (
        initialization,
        wrong_producers,
        partitions,
        a_v1_transaction,
        v2_transactions,
        offsets,
        idempotence,
        markers,
        lists,
    )
}
