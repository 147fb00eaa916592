"""Errors of transactions by type: what can be aborted, and what cannot be gone on with."""

from __future__ import annotations

import pytest

from odradek.client.broker_errors import broker_error
from odradek.client.errors import ConnectionLost
from odradek.client.producer.transactions.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    ProducerFencedError,
    transaction_error,
)
from odradek.common.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFencedError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFencedError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FatalTransactionError),
        (ErrorCode.INVALID_TXN_STATE, FatalTransactionError),
        (ErrorCode.TRANSACTION_ABORTABLE, AbortableTransactionError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AbortableTransactionError),
        (ErrorCode.UNKNOWN_MEMBER_ID, AbortableTransactionError),
        (ErrorCode.ILLEGAL_GENERATION, AbortableTransactionError),
        (ErrorCode.MESSAGE_TOO_LARGE, AbortableTransactionError),
    ],
)
def test_each_code_has_its_type(code: ErrorCode, kind: type[Exception]) -> None:
    cause = broker_error(code)
    made = transaction_error(cause)
    assert type(made) is kind
    assert made.__cause__ is cause


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE])
def test_what_only_the_coordinator_knows_is_abortable_when_a_leader_says_it(code: ErrorCode) -> None:
    error = transaction_error(broker_error(code), from_partition=True)
    assert type(error) is AbortableTransactionError


def test_a_lost_connection_can_be_aborted() -> None:
    error = transaction_error(ConnectionLost("localhost:9092", "it was closed"))
    assert type(error) is AbortableTransactionError
    assert "localhost:9092" in str(error)


def test_an_error_of_the_transaction_stays_what_it_is() -> None:
    error = ProducerFencedError("gone")
    assert transaction_error(error) is error
