"""The transactions of a query as its driver begins and ends them; no Spark runs here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.wire import set_transaction_version
from client.eventually import eventually
from compat.clients.librdkafka import Librdkafka
from odradek.client.admin.admin import Admin
from odradek.client.broker_errors import InvalidProducerIdMapping
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.producer import Producer
from odradek.common.ids import TopicPartition
from odradek.spark.transactions.driver import QueryTransactions
from odradek.spark.transactions.errors import FencedByOtherDriver, TransactionTooLong
from odradek.spark.transactions.marker import MicroBatch
from odradek.testing import Cluster
from spark.kills.kill_run import committed_values

PATIENCE = {"max_block_ms": "8000"}
"""Less than the time-out of a transaction: nothing may depend on that one."""


@pytest.fixture
def driver(brokers: str, topic: str) -> Iterator[QueryTransactions]:
    Librdkafka(brokers).create_topic(topic, partitions=2)
    with a_driver(brokers, topic) as driver:
        yield driver


def a_driver(brokers: str, name: str, **settings: str) -> QueryTransactions:
    return QueryTransactions(name, {"bootstrap_servers": brokers, **PATIENCE, **settings})


def micro_batch(number: int, run: str | None = None) -> MicroBatch:
    return MicroBatch("a query", number).of_run(run)


def write(brokers: str, name: str, producer: ProducerId, partition: int = 0) -> dict[TopicPartition, int]:
    """One row, as a task writes it."""
    with Producer(bootstrap_servers=brokers, transactional_id=name) as task:
        task.join_transaction(producer)
        task.send(name, b"row", partition=partition).result(30)
        return task.transaction_sequences()


def write_batch(
    driver: QueryTransactions, brokers: str, number: int, partition: int = 0, run: str | None = None
) -> None:
    batch = micro_batch(number, run)
    producer = driver.begin(batch)
    assert producer is not None
    driver.commit(batch, write(brokers, driver.name, producer, partition), {})


def rows(brokers: str, topic: str) -> list[str]:
    return [value for partition in committed_values(brokers, topic) for value in partition]


def test_a_driver_that_died_between_marker_and_end_keeps_nobody_waiting(driver, brokers, topic):
    write_batch(driver, brokers, 0)
    producer = driver.begin(micro_batch(1))
    assert producer is not None
    written = write(brokers, topic, producer)
    driver._commit_marker(micro_batch(1), written, {})
    with a_driver(brokers, topic) as next_driver:
        write_batch(next_driver, brokers, 1)
    assert len(rows(brokers, topic)) == 2


def test_a_micro_batch_that_failed_is_aborted_without_being_fenced(driver, brokers, topic):
    write_batch(driver, brokers, 0)
    for _ in range(2):
        producer = driver.begin(micro_batch(1))
        assert producer is not None
        write(brokers, topic, producer)
        assert driver.abort() is None
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|transaction"):
            write(brokers, topic, producer)  # a late task of the attempt that was aborted
    write_batch(driver, brokers, 1)
    assert len(rows(brokers, topic)) == 2


def test_a_micro_batch_that_failed_before_its_first_row_is_aborted(driver, brokers, topic):
    assert driver.begin(micro_batch(0)) is not None
    assert driver.abort() is None
    write_batch(driver, brokers, 0)
    assert len(rows(brokers, topic)) == 1


def test_an_abort_reports_that_another_driver_has_taken_over(driver, brokers, topic):
    producer = driver.begin(micro_batch(0))
    assert producer is not None
    write(brokers, topic, producer)
    with a_driver(brokers, topic) as other:
        write_batch(other, brokers, 0)
    cause = driver.abort()
    assert isinstance(cause, FencedByOtherDriver)
    assert "has fenced this one, which stops" in str(cause)
    assert len(rows(brokers, topic)) == 1


def test_a_driver_that_was_replaced_between_micro_batches_fences_nobody_and_stops(driver, brokers, topic):
    """As by the data source, which begins anew for each micro-batch."""
    with a_driver(brokers, topic) as first:
        write_batch(first, brokers, 0, run="first")
    write_batch(driver, brokers, 1, run="second")
    for number in (1, 2):
        with a_driver(brokers, topic) as first, pytest.raises(FencedByOtherDriver):
            first.begin(micro_batch(number, "first"))
    write_batch(driver, brokers, 2, run="second")
    with a_driver(brokers, topic) as third:
        assert third.begin(micro_batch(2, "third")) is None
    assert len(rows(brokers, topic)) == 3


def test_an_abort_reports_that_the_micro_batch_took_too_long(driver, brokers, topic):
    with a_driver(brokers, topic, transaction_timeout_ms="200") as quick:
        producer = quick.begin(micro_batch(0))
        assert producer is not None
        write(brokers, topic, producer)
        wait_until_aborted(brokers, topic)
        cause = quick.abort()
    assert isinstance(cause, TransactionTooLong)
    assert "raise kafka.transaction.timeout.ms" in str(cause)
    assert rows(brokers, topic) == []


def wait_until_aborted(brokers: str, name: str) -> None:
    with Admin(bootstrap_servers=brokers) as admin:
        eventually(lambda: admin.describe_transactions([name])[name].state == "CompleteAbort")


@pytest.fixture(scope="module")
def forgetful() -> Iterator[str]:
    """A broker that forgets transactional ids soon."""
    settings = {
        "transactional.id.expiration.ms": 2000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 50,
    }
    with Cluster(settings, process=True) as cluster:
        yield cluster.bootstrap


def wait_until_forgotten(brokers: str, name: str) -> None:
    with Admin(bootstrap_servers=brokers) as admin:
        eventually(lambda: name not in {one.transactional_id for one in admin.list_transactions()})


@pytest.mark.parametrize("version", [1, 2])
def test_a_driver_that_was_idle_for_long_begins_again(forgetful, topic, version):
    set_transaction_version(forgetful, version)
    Librdkafka(forgetful).create_topic(topic)
    with QueryTransactions(topic, {"bootstrap_servers": forgetful, **PATIENCE}, idle_s=0) as driver:
        write_batch(driver, forgetful, 0, run="first")
        wait_until_forgotten(forgetful, topic)
        write_batch(driver, forgetful, 1, run="first")
        with a_driver(forgetful, topic) as other:
            write_batch(other, forgetful, 2, run="second")
        with pytest.raises(FencedByOtherDriver):
            driver.begin(micro_batch(2, "first"))
    assert len(rows(forgetful, topic)) == 3


def test_an_id_that_was_forgotten_early_is_not_taken_for_a_fence(forgetful, topic):
    set_transaction_version(forgetful, 2)
    Librdkafka(forgetful).create_topic(topic)
    with a_driver(forgetful, topic) as driver:
        write_batch(driver, forgetful, 0)
        wait_until_forgotten(forgetful, topic)
        producer = driver.begin(micro_batch(1))
        assert producer is not None
        with pytest.raises(InvalidProducerIdMapping):
            write(forgetful, topic, producer)
        assert "have forgotten the transactional id" in str(driver.abort())
        write_batch(driver, forgetful, 1)
    assert len(rows(forgetful, topic)) == 2


def test_markers_of_a_source_that_is_no_topic_stay_in_one_place(driver, brokers, topic):
    """Else one that the group's coordinator is still completing may hide behind an older one."""
    for number in range(3):
        write_batch(driver, brokers, number, partition=1 - number % 2)
    with a_driver(brokers, topic) as next_driver:
        write_batch(next_driver, brokers, 3, partition=0)
    with Admin(bootstrap_servers=brokers) as admin:
        ((place, marker),) = admin.list_group_offsets(topic).items()
    assert place == TopicPartition(topic, 1)
    assert (marker.offset, '"batch":3' in marker.metadata) == (4, True)
