"""Transactions of our producers: all of one or nothing, on our broker and on Apache Kafka, v1 and v2."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from client.producer.transactions.brokers import ON_KAFKA, PARTITIONS, a_consumer, table_values, values
from odradek import (
    AbortableTransactionError,
    Admin,
    AsyncProducer,
    ConfigError,
    Consumer,
    ConsumerGroupMetadata,
    FatalTransactionError,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionStateError,
)


def a_producer(bootstrap: str, topic: str, **settings: Any) -> Producer[bytes, bytes]:
    return Producer(bootstrap_servers=bootstrap, transactional_id=f"writer of {topic}", **settings)


def test_committed_transactions_are_read_and_aborted_ones_are_not(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        for round_number in range(3):
            with producer.transaction():
                for number in range(10):
                    producer.send(made_topic, b"kept %d %d" % (round_number, number))
            with pytest.raises(KeyError), producer.transaction():  # noqa: PT012
                for number in range(10):
                    producer.send(made_topic, b"aborted %d" % number)
                producer.flush()
                raise KeyError
    kept = sorted(b"kept %d %d" % (one, other) for one in range(3) for other in range(10))
    assert values(bootstrap, made_topic) == kept
    assert table_values(bootstrap, made_topic) == kept
    assert len(values(bootstrap, made_topic, "read_uncommitted")) == 60


def test_an_open_transaction_is_not_read(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(made_topic, b"open")
        assert producer.flush(60)
        assert values(bootstrap, made_topic) == []
        assert values(bootstrap, made_topic, "read_uncommitted") == [b"open"]
        producer.commit_transaction()
    assert values(bootstrap, made_topic) == [b"open"]


@pytest.mark.parametrize("reads_tables", [False, True], ids=["records", "tables"])
def test_a_reader_that_keeps_up_sees_committed_records_only_and_in_order(
    bootstrap: str, made_topic: str, *, reads_tables: bool
) -> None:
    def write() -> None:
        with a_producer(bootstrap, made_topic, linger_ms=0) as producer:
            producer.init_transactions()
            for number in range(40):
                producer.begin_transaction()
                word = b"aborted" if number % 3 == 0 else b"kept"
                for place in range(5):
                    producer.send(made_topic, b"%s %d %d" % (word, number, place), partition=0).result(60)
                if number % 3 == 0:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()

    expected = [b"kept %d %d" % (number, place) for number in range(40) if number % 3 for place in range(5)]
    found: list[bytes] = []
    with a_consumer(bootstrap, made_topic, "read_committed") as consumer, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        deadline = time.monotonic() + 60
        while len(found) < len(expected) and time.monotonic() < deadline:
            if reads_tables:
                found += consumer.poll_table(0.1).column("value").to_pylist()
            else:
                found += [record.value for record in consumer.poll(0.1)]
        writing.result(60)
    assert found == expected


def test_tables_are_part_of_a_transaction(bootstrap: str, made_topic: str) -> None:
    table = pa.table({"value": [b"%d" % number for number in range(1000)]})
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_table(made_topic, table)
        producer.begin_transaction()
        assert producer.send_table(made_topic, table).result(60)
        producer.abort_transaction()
    assert table_values(bootstrap, made_topic) == sorted(table.column("value").to_pylist())


def test_offsets_count_only_when_the_transaction_is_committed(bootstrap: str, made_topic: str) -> None:
    group, partition = f"group of {made_topic}", TopicPartition(made_topic, 0)
    with a_producer(bootstrap, made_topic) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        producer.init_transactions()
        with producer.transaction():
            producer.send(made_topic, b"1")
            producer.send_offsets_to_transaction({partition: 5}, group)
        assert admin.list_group_offsets(group, require_stable=True)[partition].offset == 5
        producer.begin_transaction()
        producer.send_offsets_to_transaction({partition: 9}, group)
        producer.abort_transaction()
        assert admin.list_group_offsets(group, require_stable=True)[partition].offset == 5


# Apache Kafka 3.9 has the new protocol only behind a feature.
@pytest.mark.parametrize(
    ("bootstrap", "protocol"),
    [
        ("ours", "classic"),
        ("ours", "consumer"),
        pytest.param("kafka_v2", "classic", marks=ON_KAFKA),
        pytest.param("kafka_v2", "consumer", marks=ON_KAFKA),
        pytest.param("kafka_v1", "classic", marks=ON_KAFKA),
    ],
    indirect=["bootstrap"],
)
def test_offsets_of_a_member_that_is_gone_make_the_transaction_abortable(
    bootstrap: str, made_topic: str, protocol: str
) -> None:
    group = f"group of {made_topic}"
    with (
        a_producer(bootstrap, made_topic) as producer,
        Consumer(bootstrap_servers=bootstrap, group_id=group, group_protocol=protocol) as consumer,
    ):
        consumer.subscribe([made_topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        member = consumer.group_metadata()
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({TopicPartition(made_topic, 0): 3}, member)
        producer.begin_transaction()
        stale = ConsumerGroupMetadata(group, member.generation_id, "nobody")
        with pytest.raises(AbortableTransactionError):
            producer.send_offsets_to_transaction({TopicPartition(made_topic, 0): 4}, stale)
        with pytest.raises(AbortableTransactionError):
            producer.send(made_topic, b"refused")
        producer.abort_transaction()
        with producer.transaction():
            producer.send(made_topic, b"after")
    assert values(bootstrap, made_topic) == [b"after"]


def test_a_second_producer_fences_the_first_and_aborts_its_transaction(
    bootstrap: str, made_topic: str
) -> None:
    with a_producer(bootstrap, made_topic) as first, a_producer(bootstrap, made_topic) as second:
        first.init_transactions()
        first.begin_transaction()
        first.send(made_topic, b"of the first").result(60)
        second.init_transactions()
        first.send(made_topic, b"too late")
        with pytest.raises((AbortableTransactionError, FatalTransactionError)):
            first.commit_transaction()
        with pytest.raises(ProducerFencedError):
            first.abort_transaction()
        with pytest.raises(ProducerFencedError):
            first.begin_transaction()
        with second.transaction():
            second.send(made_topic, b"of the second")
    assert values(bootstrap, made_topic) == [b"of the second"]


def test_a_record_that_fails_fails_the_commit_and_the_next_transaction_works(
    bootstrap: str, made_topic: str
) -> None:
    limited = f"{made_topic}-limited"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(limited, num_partitions=PARTITIONS, configs={"max.message.bytes": "1000"})
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        fine = producer.send(limited, b"fine", partition=1)
        fine.result(60)
        too_large = producer.send(limited, b"." * 5000, partition=1)
        with pytest.raises(AbortableTransactionError, match="MessageTooLarge"):
            producer.commit_transaction()
        assert too_large.exception(60) is not None
        producer.abort_transaction()
        for number in range(3):
            with producer.transaction():
                producer.send(limited, b"after %d" % number, partition=1)
    assert values(bootstrap, limited) == [b"after 0", b"after 1", b"after 2"]


def test_what_was_not_sent_when_a_transaction_is_aborted_fails(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic, linger_ms=60_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send(made_topic, b"waits")
        producer.abort_transaction()
        assert "aborted" in str(future.exception(0))
        with producer.transaction():
            producer.send(made_topic, b"sent")
    assert values(bootstrap, made_topic, "read_uncommitted") == [b"sent"]


def test_an_empty_transaction_can_be_committed_and_aborted(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            pass
        producer.begin_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(made_topic, b"1")
    assert values(bootstrap, made_topic) == [b"1"]


def test_closing_aborts_the_open_transaction(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(made_topic, b"left open").result(60)
    with Producer(bootstrap_servers=bootstrap) as plain:
        plain.send(made_topic, b"plain").result(60)
    assert values(bootstrap, made_topic) == [b"plain"]


def test_calls_out_of_order_are_refused(bootstrap: str, made_topic: str) -> None:
    with a_producer(bootstrap, made_topic) as producer:
        with pytest.raises(TransactionStateError, match="init_transactions"):
            producer.send(made_topic, b"early")
        with pytest.raises(TransactionStateError, match="init_transactions"):
            producer.begin_transaction()
        producer.init_transactions()
        for call in (producer.commit_transaction, producer.abort_transaction, producer.init_transactions):
            with pytest.raises(TransactionStateError, match="no transaction was begun"):
                call()
        with pytest.raises(TransactionStateError):
            producer.send(made_topic, b"between")
        producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="a transaction is open"):
            producer.begin_transaction()
    with Producer(bootstrap_servers=bootstrap) as plain, pytest.raises(TransactionStateError):
        plain.init_transactions()


def test_the_async_producer_does_the_same(bootstrap: str, made_topic: str) -> None:
    async def run() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, transactional_id=made_topic) as producer:
            await producer.init_transactions()
            with pytest.raises(TransactionStateError):
                await producer.send(made_topic, b"between")
            async with producer.transaction():
                await producer.send(made_topic, b"kept")
                await producer.send_offsets_to_transaction({TopicPartition(made_topic, 0): 1}, made_topic)
            with pytest.raises(KeyError):  # noqa: PT012
                async with producer.transaction():
                    await producer.send_and_wait(made_topic, b"aborted")
                    raise KeyError

    asyncio.run(run())
    assert values(bootstrap, made_topic) == [b"kept"]


def test_settings_that_exclude_transactions_are_refused() -> None:
    for settings in ({"acks": 1}, {"enable_idempotence": False}, {"retries": 0}):
        with pytest.raises(ConfigError, match="transactional_id contradicts"):
            Producer(transactional_id="x", **settings)  # type: ignore[call-overload]
