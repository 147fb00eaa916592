"""Misuse of transactions: the documented error code, and each transaction ends one way everywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from broker.wire import WireClient, a_topic
from compat.transaction_requests import TOPIC, Dialogue
from faults.broker_process import wait_until
from odradek import (
    AbortableTransactionError,
    Consumer,
    FatalTransactionError,
    Producer,
    TopicPartition,
    TransactionError,
)
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteTopicsRequest, EndTxnRequest
from odradek.testing import Cluster

PARTITIONS = 2
MAX_TIMEOUT_MS = 10_000
SETTINGS = {
    "transaction.max.timeout.ms": MAX_TIMEOUT_MS,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 2,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster(SETTINGS) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def dialogue(address: str, request: pytest.FixtureRequest) -> Iterator[Dialogue]:
    """A producer of its own, in a topic that is empty."""
    with WireClient(address) as client:
        client.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=30_000))
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(TOPIC, PARTITIONS))
    made = Dialogue(address, request.node.name)
    with made.client:
        yield made


def committed(address: str) -> list[list[int]]:
    """The offsets that a read_committed consumer sees in each partition, once nothing is undecided there."""
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    found: list[list[int]] = [[] for _ in places]
    with (
        Consumer(bootstrap_servers=address, isolation_level="read_committed") as reader,
        Consumer(bootstrap_servers=address) as other,
    ):
        ends = other.end_offsets(places)
        reader.assign(places)
        reader.seek_to_beginning(places)

        def is_read() -> bool:
            for record in reader.poll(0.1):
                found[record.partition].append(record.offset)
            return all(reader.position(place) >= ends[place] for place in places)

        wait_until(is_read, "everything is decided")
    return found


def open_transaction(dialogue: Dialogue) -> None:
    """A record in each partition, and an offset of the group."""
    dialogue.init(timeout_ms=MAX_TIMEOUT_MS)
    dialogue.add(*((TOPIC, index) for index in range(PARTITIONS)))
    for index in range(PARTITIONS):
        assert dialogue.produce(0, partition=index) == "NONE"
    dialogue.add_offsets()
    assert dialogue.commit_offset(version=3) == "NONE"


WRONG: dict[str, tuple[Callable[[Dialogue], dict[str, Any]], str, str]] = {
    "an older epoch": (
        lambda one: {"producer_epoch": one.epoch - 1},
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
    ),
    "a newer epoch": (
        lambda one: {"producer_epoch": one.epoch + 1},
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
    ),
    "another producer id": (
        lambda one: {"producer_id": one.producer_id + 999},
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_PRODUCER_ID_MAPPING",
    ),
    "an unknown transactional id": (
        lambda one: {"transactional_id": "nobody"},
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_PRODUCER_ID_MAPPING",
    ),
}
"""What is wrong, what the coordinator says to it, and what a leader says, which asks the coordinator."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_producer_is_refused_and_the_open_transaction_is_not_touched(
    address: str, dialogue: Dialogue, what: str
) -> None:
    dialogue.init(timeout_ms=MAX_TIMEOUT_MS)
    open_transaction(dialogue)
    make, code, leaders_code = WRONG[what]
    given, before = make(dialogue), dialogue.described()
    assert dialogue.add((TOPIC, 0), **given) == {(TOPIC, 0): code}
    assert dialogue.verify(0, **given) == ("NONE", {(TOPIC, 0): code})
    assert dialogue.add_offsets(**given) == code
    for version in (4, 5):
        for commit in (True, False):
            assert dialogue.end(commit=commit, version=version, **given)[0] == code
    if "transactional_id" not in given:  # what a leader has verified once is not asked about again
        assert dialogue.commit_offset(version=3, **given) == leaders_code
    if "producer_id" in given:
        assert dialogue.produce(0, **given) == leaders_code
    assert dialogue.described() == before

    assert dialogue.end()[0] == "NONE"
    assert committed(address) == [[0]] * PARTITIONS


@pytest.mark.parametrize("version", [4, 5], ids=["v1", "v2"])
def test_of_ends_at_the_same_time_one_decides(address: str, dialogue: Dialogue, version: int) -> None:
    open_transaction(dialogue)
    barrier = threading.Barrier(8)

    def end(number: int) -> tuple[bool, ErrorCode]:
        commit = bool(number % 2)
        request = EndTxnRequest(
            transactional_id=dialogue.name,
            producer_id=dialogue.producer_id,
            producer_epoch=dialogue.epoch,
            committed=commit,
        )
        with WireClient(address) as client:
            barrier.wait()
            return commit, ErrorCode(client.ask(ApiKey.END_TXN, version, request).error_code)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(end, range(8)))
    accepted = {commit for commit, code in answers if code is ErrorCode.NONE}
    refused = {code for _, code in answers} - {ErrorCode.NONE}
    assert refused <= {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
    }
    (is_commit,) = accepted
    assert dialogue.settled()[1] == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert committed(address) == [[0] if is_commit else []] * PARTITIONS


def test_a_time_out_above_the_maximum_is_refused_and_one_at_it_is_not(dialogue: Dialogue) -> None:
    assert dialogue.init(timeout_ms=MAX_TIMEOUT_MS + 1)[0] == "INVALID_TRANSACTION_TIMEOUT"
    assert dialogue.described()[0] == "TRANSACTIONAL_ID_NOT_FOUND"
    assert dialogue.init(timeout_ms=MAX_TIMEOUT_MS)[0] == "NONE"


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_markers_for_a_deleted_topic_are_left_out_and_the_others_written(
    address: str, dialogue: Dialogue, commit: bool
) -> None:
    with WireClient(address) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("short-lived"))
    open_transaction(dialogue)
    dialogue.add(("short-lived", 0))
    with WireClient(address) as client:
        request = DeleteTopicsRequest(topic_names=["short-lived"], timeout_ms=30_000)
        assert client.ask(ApiKey.DELETE_TOPICS, 5, request).responses[0].error_code == ErrorCode.NONE
    assert dialogue.end(commit=commit)[0] == "NONE"
    assert dialogue.settled()[1] == ("CompleteCommit" if commit else "CompleteAbort")
    assert committed(address) == [[0] if commit else []] * PARTITIONS


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_topic_created_again_with_fewer_partitions_holds_up_no_transaction(
    address: str, dialogue: Dialogue, commit: bool
) -> None:
    with WireClient(address) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("recreated", 3))
        open_transaction(dialogue)
        dialogue.add(("recreated", 0), ("recreated", 2))
        request = DeleteTopicsRequest(topic_names=["recreated"], timeout_ms=30_000)
        assert client.ask(ApiKey.DELETE_TOPICS, 5, request).responses[0].error_code == ErrorCode.NONE
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("recreated"))
        assert dialogue.end(commit=commit)[0] == "NONE"
        assert dialogue.settled()[1] == ("CompleteCommit" if commit else "CompleteAbort")
        client.ask(ApiKey.DELETE_TOPICS, 5, request)
    assert committed(address) == [[0] if commit else []] * PARTITIONS


def test_a_produce_with_batches_of_two_producers_is_refused_as_a_whole(dialogue: Dialogue) -> None:
    dialogue.init(timeout_ms=MAX_TIMEOUT_MS)
    dialogue.add(*((TOPIC, index) for index in range(PARTITIONS)))
    assert (
        dialogue.produce_of_two({}, {"producer_id": dialogue.producer_id + 1})
        == ["INVALID_PRODUCER_ID_MAPPING"] * 2
    )
    assert (
        dialogue.produce_of_two({}, {"producer_epoch": dialogue.epoch + 1})
        == ["INVALID_PRODUCER_ID_MAPPING"] * 2
    )
    assert dialogue.produce_of_two({}, {}) == ["NONE"] * 2


def test_two_programs_with_one_id_fence_each_other_and_tear_nothing(address: str, dialogue: Dialogue) -> None:
    """Each makes a new producer when it was fenced, in the middle of whatever the other does."""

    errors: list[TransactionError] = []

    def run_program() -> int:
        done = 0
        for _ in range(5):
            with Producer(
                bootstrap_servers=address,
                transactional_id=dialogue.name,
                transaction_timeout_ms=MAX_TIMEOUT_MS,
            ) as producer:
                try:
                    producer.init_transactions()
                    for _ in range(4):
                        with producer.transaction():
                            for index in range(PARTITIONS):
                                producer.send(TOPIC, b"x", partition=index)
                        done += 1
                except TransactionError as error:
                    errors.append(error)
        return done

    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(lambda _: run_program(), range(2)))
    seen = [len(offsets) for offsets in committed(address)]
    # A commit whose answer was lost to the other program may be there as well.
    assert len(set(seen)) == 1, seen
    assert seen[0] >= done
    # A leader may be the first to say that the transaction was ended; why, only the coordinator knows.
    assert all(isinstance(one, FatalTransactionError | AbortableTransactionError) for one in errors), errors
