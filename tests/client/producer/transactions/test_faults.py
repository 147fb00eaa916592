"""Transactions over a network that fails: whole or nothing, once, in order; and what the program is told."""

from __future__ import annotations

import threading
import time

import pytest

from client.producer.transactions.brokers import PARTITIONS, make_topic, values
from client.proxy import Proxy
from odradek import (
    AbortableTransactionError,
    DeadlineExceeded,
    Producer,
    TopicPartition,
    TransactionStateError,
)
from odradek.testing import Cluster

QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 50}
Proxied = tuple[Proxy, Cluster]


@pytest.fixture
def made_topic(proxied: Proxied, topic: str) -> str:
    return make_topic(proxied[1].bootstrap, topic)


@pytest.mark.parametrize("answers", range(6))
def test_an_answer_that_is_lost_at_any_step_changes_nothing(
    proxied: Proxied, proxy: Proxy, made_topic: str, answers: int
) -> None:
    with Producer(bootstrap_servers=proxy.address, transactional_id=made_topic, **QUICK) as producer:
        producer.init_transactions()
        for number in range(2):
            proxy.cut_instead_of_answer(answers)
            with producer.transaction():
                for partition in range(PARTITIONS):
                    producer.send(made_topic, b"%d" % number, partition=partition)
                producer.send_offsets_to_transaction({TopicPartition(made_topic, 0): number}, made_topic)
    proxy.come_up()
    assert values(proxied[1].bootstrap, made_topic) == [b"0"] * PARTITIONS + [b"1"] * PARTITIONS


def test_a_record_that_times_out_makes_the_transaction_abortable_and_the_next_one_works(
    proxied: Proxied, proxy: Proxy, made_topic: str
) -> None:
    with Producer(
        bootstrap_servers=proxy.address,
        transactional_id=made_topic,
        linger_ms=0,
        request_timeout_ms=500,
        delivery_timeout_ms=1000,
        **QUICK,
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(made_topic, b"lost", partition=0).result(20)
        proxy.pause()
        assert producer.send(made_topic, b"times out", partition=0).exception(20) is not None
        with pytest.raises(AbortableTransactionError, match="not acknowledged"):
            producer.commit_transaction()
        proxy.resume()
        producer.abort_transaction()
        for number in range(3):
            with producer.transaction():
                producer.send(made_topic, b"after %d" % number, partition=0)
    assert values(proxied[1].bootstrap, made_topic) == [b"after 0", b"after 1", b"after 2"]


def test_an_abort_does_not_wait_for_a_request_that_is_never_answered(
    proxied: Proxied, proxy: Proxy, made_topic: str
) -> None:
    with Producer(
        bootstrap_servers=proxy.address,
        transactional_id=made_topic,
        linger_ms=0,
        request_timeout_ms=500,
        **QUICK,
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(made_topic, b"aborted", partition=0).result(20)
        proxy.pause()
        in_flight = producer.send(made_topic, b"in flight", partition=0)
        time.sleep(0.1)
        timer = threading.Timer(1, proxy.resume)
        timer.start()
        producer.abort_transaction()
        timer.join()
        assert in_flight.exception(0) is not None
        with producer.transaction():
            producer.send(made_topic, b"kept", partition=0)
    assert values(proxied[1].bootstrap, made_topic) == [b"kept"]


def test_a_commit_that_takes_too_long_can_be_repeated_and_not_be_aborted(
    proxied: Proxied, proxy: Proxy, made_topic: str
) -> None:
    with Producer(
        bootstrap_servers=proxy.address,
        transactional_id=made_topic,
        linger_ms=0,
        max_block_ms=1000,
        **QUICK,
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(made_topic, b"1", partition=0).result(20)
        proxy.pause()
        with pytest.raises(DeadlineExceeded):
            producer.commit_transaction()
        with pytest.raises(TransactionStateError, match="a commit was begun"):
            producer.abort_transaction()
        proxy.resume()
        producer.commit_transaction()
        with producer.transaction():
            producer.send(made_topic, b"2", partition=0)
    assert values(proxied[1].bootstrap, made_topic) == [b"1", b"2"]
