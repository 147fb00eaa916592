"""Transactions seen by the admin client: listed, described, aborted in a partition, terminated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek import Admin, Producer, TopicPartition, broker_errors


@pytest.fixture
def producer(bootstrap: str, admin: Admin, topic: str) -> Iterator[Producer[bytes, bytes]]:
    """A producer with an open transaction of one record in partition 0."""
    admin.create_topic(topic, num_partitions=1)
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"id of {topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"1", partition=0).result(30)
        yield producer


def test_an_open_transaction_is_listed_with_filters(
    admin: Admin, topic: str, producer: Producer[bytes, bytes]
) -> None:
    name = f"id of {topic}"
    (listed,) = [one for one in admin.list_transactions() if one.transactional_id == name]
    assert listed.state == "Ongoing"
    assert listed in admin.list_transactions(states=["Ongoing"], producer_ids=[listed.producer_id])
    assert listed not in admin.list_transactions(states=["CompleteCommit"])
    assert listed not in admin.list_transactions(duration_ms=3_600_000)
    assert admin.list_transactions(transactional_id_pattern=f"id of {topic}") == [listed]
    with pytest.raises(broker_errors.InvalidRequest, match="Sleeping"):
        admin.list_transactions(states=["Sleeping"])


def test_a_description_has_the_partitions_and_an_unknown_id_an_error(
    admin: Admin, topic: str, producer: Producer[bytes, bytes]
) -> None:
    name = f"id of {topic}"
    described = admin.describe_transactions([name, "nobody"])
    found = described[name]
    assert not isinstance(found, broker_errors.BrokerError)
    assert found.partitions == {TopicPartition(topic, 0)}
    assert found.start_time_ms is not None
    assert found.timeout_ms == 60_000
    assert isinstance(described["nobody"], broker_errors.TransactionalIdNotFound)


def test_a_transaction_is_aborted_in_one_partition(
    admin: Admin, topic: str, producer: Producer[bytes, bytes]
) -> None:
    place = TopicPartition(topic, 0)
    (state,) = admin.describe_producers([place])[place]  # type: ignore[misc]
    admin.abort_transaction(place, state.producer_id, state.producer_epoch)
    (state,) = admin.describe_producers([place])[place]  # type: ignore[misc]
    assert state.current_transaction_start_offset is None


def test_a_terminated_transaction_has_ended_and_its_producer_is_fenced(
    admin: Admin, topic: str, producer: Producer[bytes, bytes]
) -> None:
    name = f"id of {topic}"
    admin.force_terminate_transaction(name)
    found = admin.describe_transactions([name])[name]
    assert not isinstance(found, broker_errors.BrokerError)
    assert found.state == "Empty"
    with pytest.raises(Exception, match=r"taken over|aborted"):
        producer.commit_transaction()
