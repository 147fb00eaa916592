"""One transaction that several processes write into: begun and ended by a driver, joined by producers."""

from __future__ import annotations

import pytest

from client.producer.transactions.brokers import PARTITIONS, values
from odradek import (
    AbortableTransactionError,
    Admin,
    Producer,
    ProducerId,
    TopicPartition,
    TransactionDriver,
    TransactionStateError,
    broker_errors,
)


def write(bootstrap: str, name: str, producer_id: ProducerId, topic: str, partition: int, first: int) -> int:
    """Write ten records as another process would; the sequence after them."""
    with Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        place = TopicPartition(topic, partition)
        producer.join_transaction(producer_id, {place: first})
        for number in range(10):
            producer.send(topic, b"%d %d" % (partition, first + number), partition=partition)
        assert producer.flush(60)
        with pytest.raises(TransactionStateError):
            producer.commit_transaction()
        return producer.transaction_sequences()[place]


def test_several_producers_write_into_one_transaction(bootstrap: str, made_topic: str) -> None:
    name, partition = f"driver of {made_topic}", TopicPartition(made_topic, 0)
    with TransactionDriver(bootstrap_servers=bootstrap, transactional_id=name) as driver:
        producer_id = driver.init_producer_id()
        assert write(bootstrap, name, producer_id, made_topic, 0, 0) == 10
        assert write(bootstrap, name, producer_id, made_topic, 1, 0) == 10
        assert write(bootstrap, name, producer_id, made_topic, 0, 10) == 20
        driver.txn_offset_commit(producer_id, {partition: 7}, made_topic)
        assert values(bootstrap, made_topic) == []
        following = driver.end_txn(producer_id)
        assert driver.committed(made_topic, [partition])[partition].offset == 7
        kept = values(bootstrap, made_topic)
        assert len(kept) == 30

        # v1: the same epoch goes on, and so do the sequences; v2: a new epoch begins at 0.
        first = 20 if following == producer_id else 0
        write(bootstrap, name, following, made_topic, 0, first)
        driver.end_txn(following, commit=False)
        assert values(bootstrap, made_topic) == kept


def test_a_record_that_fails_in_a_task_leaves_the_end_to_the_driver(bootstrap: str, made_topic: str) -> None:
    name, limited = f"driver of {made_topic}", f"{made_topic}-limited"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(limited, num_partitions=PARTITIONS, configs={"max.message.bytes": "1000"})
    with TransactionDriver(bootstrap_servers=bootstrap, transactional_id=name) as driver:
        producer_id = driver.init_producer_id()
        write(bootstrap, name, producer_id, made_topic, 0, 0)
        with Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
            producer.join_transaction(producer_id)
            assert producer.send(limited, b"." * 5000, partition=1).exception(60) is not None
            with pytest.raises(AbortableTransactionError):
                producer.send(limited, b"small", partition=1)
            with pytest.raises(AbortableTransactionError):
                producer.abort_transaction()
        # The producer is closed, and the transaction is still open: only the driver ends it.
        write(bootstrap, name, producer_id, made_topic, 2, 0)
        driver.end_txn(producer_id)
    assert len(values(bootstrap, made_topic)) == 20


def test_a_task_of_an_earlier_driver_is_refused(bootstrap: str, made_topic: str) -> None:
    name = f"driver of {made_topic}"
    with TransactionDriver(bootstrap_servers=bootstrap, transactional_id=name) as driver:
        stale = driver.init_producer_id()
        fresh = driver.init_producer_id()
        with Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
            producer.join_transaction(stale)
            assert producer.send(made_topic, b"stale", partition=0).exception(60) is not None
        write(bootstrap, name, fresh, made_topic, 0, 0)
        with pytest.raises((broker_errors.ProducerFenced, broker_errors.InvalidProducerEpoch)):
            driver.end_txn(stale)
        driver.end_txn(fresh)
    assert len(values(bootstrap, made_topic)) == 10
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.describe_producers([TopicPartition(made_topic, 0)])
