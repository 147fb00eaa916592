"""Batches that follow a refused one on its connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from broker.wire import a_batch
from odradek.broker.requests.refused_batches import KEPT_MS, RefusedBatches
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.log.producers.producer_states import BATCHES_KEPT, MAX_SEQUENCE
from odradek.net.connection import Connection

PARTITION, OTHER_PARTITION = ("orders", 0), ("orders", 1)
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Client:
    def __init__(self, refused: RefusedBatches) -> None:
        self.at_close: dict[Any, Callable[[], None]] = {}
        self.refused = refused

    def close(self) -> None:
        for callback in self.at_close.values():
            callback()

    def is_refused(self, sequence: int, **given: Any) -> bool:
        records, partition, now_ms = _batch(sequence, given)
        try:
            self.refused.check(cast(Connection, self), partition, records, now_ms)
        except KafkaError as error:
            return error.error_code is NOT_LEADER
        return False

    def note(self, sequence: int, code: ErrorCode = NOT_LEADER, **given: Any) -> None:
        records, partition, now_ms = _batch(sequence, given)
        self.refused.note(cast(Connection, self), partition, records, code, now_ms)


def _batch(sequence: int, given: dict[str, Any]) -> tuple[bytes, Any, int]:
    batch = a_batch(
        b"x",
        producer_id=given.get("producer_id", 7),
        producer_epoch=given.get("producer_epoch", 0),
        base_sequence=sequence,
    )
    return bytes(batch), given.get("partition", PARTITION), given.get("now_ms", 0)


@pytest.fixture
def client() -> Client:
    return Client(RefusedBatches())


def test_what_follows_is_refused_until_the_batch_comes_again(client: Client) -> None:
    client.note(10)
    assert client.is_refused(11)
    assert client.is_refused(12)
    assert not client.is_refused(10)
    assert not client.is_refused(11)
    assert client.refused.is_empty


@pytest.mark.parametrize(
    "given",
    [{"producer_id": 8}, {"producer_epoch": 1}, {"partition": OTHER_PARTITION}, {"now_ms": KEPT_MS}],
    ids=["another-producer", "a-newer-epoch", "another-partition", "much-later"],
)
def test_nothing_else_is_refused(client: Client, given: dict[str, Any]) -> None:
    client.note(10)
    assert not client.is_refused(11, **given)


def test_other_connections_are_not_concerned(client: Client) -> None:
    client.note(10)
    assert not Client(client.refused).is_refused(11)


def test_no_more_than_can_be_in_flight_is_refused(client: Client) -> None:
    client.note(10)
    assert [client.is_refused(11 + number) for number in range(BATCHES_KEPT)] == [True] * 4 + [False]


def test_sequences_wrap(client: Client) -> None:
    client.note(MAX_SEQUENCE)
    assert client.is_refused(0)
    assert not client.is_refused(MAX_SEQUENCE - 1)


def test_an_error_that_is_final_is_not_kept(client: Client) -> None:
    client.note(10, ErrorCode.INVALID_RECORD)
    assert client.refused.is_empty
    assert not client.is_refused(11)


def test_a_closed_connection_is_forgotten(client: Client) -> None:
    client.note(10)
    client.close()
    assert client.refused.is_empty
