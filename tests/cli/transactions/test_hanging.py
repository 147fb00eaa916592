"""A transaction that really hangs: made by a late batch with verification off, found, and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker.wire import WireClient, a_batch, a_produce
from cli.conftest import Cli
from client.eventually import eventually
from compat.java_tools import printed
from odradek import Admin, Producer, TopicPartition
from odradek.client.admin.base import require
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey

VERIFICATION = "transaction.partition.verification.enable"
LAST_VERSION_OF_V1 = 11
TOOL = "TransactionsCommand"


@pytest.fixture
def hanging(cli: Cli, topic: str, make_topic: Callable[..., str]) -> Iterator[dict[str, int]]:
    """What find-hanging must say of it: its batch came after the marker that ended its transaction."""
    make_topic("--partitions", "2")
    with Producer(bootstrap_servers=cli.bootstrap, transactional_id=f"id of {topic}") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"committed", partition=0)
    place = ("--topic", topic, "--partition", "0")
    (state,) = cli.objects("transactions", "describe-producers", *place)
    cli.run("configs", "alter", "--broker-defaults", "--add-config", f"{VERIFICATION}=false")
    produce_late(cli.bootstrap, topic, state["producer_id"], state["producer_epoch"], ErrorCode.NONE)
    yield {
        "partition": 0,
        "producer_id": state["producer_id"],
        "producer_epoch": state["producer_epoch"],
        "start_offset": 2,
    }
    cli.run("configs", "alter", "--broker-defaults", "--delete-config", VERIFICATION)


def produce_late(
    bootstrap: str, topic: str, producer_id: int, producer_epoch: int, expected: ErrorCode
) -> None:
    """A batch of the producer, as it comes from a network that has held it back."""
    batch = a_batch(
        b"late",
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = a_produce(batch, topic, acks=-1)
    request.transactional_id = f"id of {topic}"
    with WireClient(bootstrap) as client:
        answer = client.ask(ApiKey.PRODUCE, LAST_VERSION_OF_V1, request)
    assert answer.responses[0].partition_responses[0].error_code == expected


def undecided_records(bootstrap: str, topic: str) -> int:
    """How far the last stable offset is behind the high watermark in partition 0."""
    place = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=bootstrap) as admin:
        ends = [
            require(admin.list_offsets({place: OffsetSpec.LATEST}, isolation_level=level)[place])
            for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
        ]
    return ends[0].offset - ends[1].offset


def find(cli: Cli, topic: str) -> list[dict[str, int]]:
    found = cli.objects("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert all(row.pop("topic") == topic for row in found)
    return [
        {name: row[name] for name in ("partition", "producer_id", "producer_epoch", "start_offset")}
        for row in found
    ]


def test_a_late_batch_is_refused_while_leaders_verify(cli: Cli, topic: str, hanging: dict[str, int]) -> None:
    cli.run("configs", "alter", "--broker-defaults", "--add-config", f"{VERIFICATION}=true")
    cli.run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "2")
    producer = hanging["producer_id"], hanging["producer_epoch"]
    produce_late(cli.bootstrap, topic, *producer, ErrorCode.TRANSACTION_ABORTABLE)
    assert undecided_records(cli.bootstrap, topic) == 0


def test_a_hanging_transaction_is_found_and_aborted(cli: Cli, topic: str, hanging: dict[str, int]) -> None:
    assert undecided_records(cli.bootstrap, topic) == 1
    assert find(cli, topic) == [hanging]
    cli.run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "2")
    assert find(cli, topic) == []
    eventually(lambda: undecided_records(cli.bootstrap, topic) == 0)


@pytest.mark.java
@pytest.mark.long
def test_the_tool_of_kafka_finds_and_aborts_it_too(cli: Cli, topic: str, hanging: dict[str, int]) -> None:
    given = ("--bootstrap-server", cli.bootstrap)
    place = ("--topic", topic, "--partition", "0")
    titles, row = printed(
        TOOL, *given, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0"
    ).splitlines()
    theirs = [cell.strip() for cell in row.split("\t")]
    assert theirs[:4] == [topic, "0", str(hanging["producer_id"]), str(hanging["producer_epoch"])]
    ours = cli.lines(
        "transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0", "-o", "text"
    )
    assert [cell.strip() for cell in ours[0].split("\t")] == [cell.strip() for cell in titles.split("\t")]
    assert [cell.strip() for cell in ours[1].split("\t")] == theirs
    printed(TOOL, *given, "abort", *place, "--start-offset", "2")
    eventually(lambda: undecided_records(cli.bootstrap, topic) == 0)
