"""`odradek transactions`: what is open, who opened it, and ending it; the columns are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from cli.conftest import Cli
from client.eventually import eventually
from compat.java_tools import printed
from odradek import Producer, TopicPartition
from odradek.cli.transactions.find_hanging import OpenTransaction, is_hanging, open_for
from odradek.cli.transactions.table import table_lines
from odradek.client.admin.producers import ProducerState
from odradek.client.admin.transactions import TransactionDescription

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def opened(cli: Cli, topic: str, make_topic: Callable[..., str]) -> Iterator[Producer[bytes, bytes]]:
    """A producer with an open transaction of one record in partition 0."""
    make_topic("--partitions", "2")
    with Producer(bootstrap_servers=cli.bootstrap, transactional_id=f"id of {topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"1", partition=0).result(30)
        yield producer


def test_an_open_transaction_is_listed_and_described(
    cli: Cli, topic: str, opened: Producer[bytes, bytes]
) -> None:
    name = f"id of {topic}"
    titles, *rows = cli.lines("transactions", "list", "-o", "text")
    assert [title.strip() for title in titles.split("\t")[:-1]] == [
        "TransactionalId",
        "Coordinator",
        "ProducerId",
        "TransactionState",
    ]
    (row,) = [row for row in rows if row.startswith(name)]
    assert row.split("\t")[3].strip() == "Ongoing"

    (described,) = cli.objects("transactions", "describe", "--transactional-id", name)
    assert described["state"] == "Ongoing"
    assert described["partitions"] == f"{topic}-0"
    assert described["duration_ms"] >= 0
    opened.commit_transaction()

    def is_complete() -> bool:
        (now,) = cli.objects("transactions", "describe", "--transactional-id", name)
        return bool(now["state"] == "CompleteCommit")

    eventually(is_complete)


@pytest.mark.java
@pytest.mark.long
def test_tables_are_those_of_the_tool_of_kafka(cli: Cli, topic: str, opened: Producer[bytes, bytes]) -> None:
    name = f"id of {topic}"

    def cells(lines: Iterable[str]) -> list[list[str]]:
        """Without the rows of other transactions, and without how long one has been open."""
        titles, *rows = ([cell.strip() for cell in line.split("\t")] for line in lines)
        changing = [index for index, title in enumerate(titles) if title == "TransactionDurationMs"]
        rows = [row for row in rows if name in row or command == "describe-producers"]
        return [[cell for index, cell in enumerate(row) if index not in changing] for row in (titles, *rows)]

    for command, given in {
        "list": (),
        "describe": ("--transactional-id", name),
        "describe-producers": ("--topic", topic, "--partition", "0"),
    }.items():
        theirs = printed("TransactionsCommand", "--bootstrap-server", cli.bootstrap, command, *given)
        ours = cli.lines("transactions", command, *given, "-o", "text")
        assert cells(ours) == cells(theirs.splitlines())
        assert len(cells(ours)) == 2


def test_an_unknown_transactional_id_is_named(cli: Cli) -> None:
    assert "there is no transactional id 'nobody'" in cli.error(
        "transactions", "describe", "--transactional-id", "nobody"
    )


def test_force_terminate_aborts_and_fences(cli: Cli, topic: str, opened: Producer[bytes, bytes]) -> None:
    name = f"id of {topic}"
    cli.run("transactions", "force-terminate", "--transactional-id", name)
    (described,) = cli.objects("transactions", "describe", "--transactional-id", name)
    assert described["state"] == "Empty"
    with pytest.raises(Exception, match=r"taken over|aborted"):
        opened.commit_transaction()


def test_abort_writes_a_marker_into_one_partition(
    cli: Cli, topic: str, opened: Producer[bytes, bytes]
) -> None:
    place = ("--topic", topic, "--partition", "0")
    (before,) = cli.objects("transactions", "describe-producers", *place)
    assert before["current_transaction_start_offset"] == 0
    assert "begins at offset 7" in cli.error("transactions", "abort", *place, "--start-offset", "7")
    cli.run("transactions", "abort", *place, "--start-offset", "0")
    (after,) = cli.objects("transactions", "describe-producers", *place)
    assert after["current_transaction_start_offset"] is None
    opened.abort_transaction()


def test_a_transaction_that_its_coordinator_knows_does_not_hang(
    cli: Cli, topic: str, opened: Producer[bytes, bytes]
) -> None:
    assert (
        cli.objects("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0") == []
    )
    opened.abort_transaction()


def test_find_hanging_needs_a_place(cli: Cli) -> None:
    assert "--topic" in cli.error("transactions", "find-hanging", exit_code=2)
    assert "--topic" in cli.error("transactions", "find-hanging", "--partition", "0", exit_code=2)


def a_state(start_offset: int | None, last_timestamp_ms: int = 0) -> ProducerState:
    return ProducerState(7, 0, 0, last_timestamp_ms, None, start_offset)


def a_description(*partitions: TopicPartition) -> TransactionDescription:
    return TransactionDescription("id", 1, 7, 0, "Ongoing", 60_000, 0, frozenset(partitions))


def test_only_transactions_that_are_old_enough_can_hang() -> None:
    states = {ORDERS: [a_state(5, 1000), a_state(6, 2000), a_state(None, 0)]}
    assert list(open_for(states, 1000)) == [OpenTransaction(ORDERS, a_state(5, 1000))]


@pytest.mark.parametrize(
    ("described", "expected"),
    [({}, True), ({7: a_description()}, True), ({7: a_description(ORDERS)}, False)],
    ids=["unknown producer", "partition not in the transaction", "partition in the transaction"],
)
def test_a_transaction_hangs_when_its_coordinator_will_write_no_marker(
    described: dict[int, TransactionDescription], *, expected: bool
) -> None:
    assert is_hanging(OpenTransaction(ORDERS, a_state(5)), described) is expected


def test_columns_are_padded_and_end_with_a_tab() -> None:
    assert list(table_lines(("A", "Long"), [("xyz", None)])) == ["A  \tLong\t", "xyz\tNone\t"]
