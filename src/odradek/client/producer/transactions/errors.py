"""Errors of transactions, by what can be done about them.

    TransactionError
      TransactionStateError        a call that is not allowed in the present state; nothing has changed
      TransactionAborted           a record that was not sent because its transaction was aborted
      AbortableTransactionError    the transaction can only be aborted; after that a new one may begin
      FatalTransactionError        this producer must be closed
        ProducerFencedError        another producer with the same transactional id has taken over

The last three have the error of the broker or the client as their `__cause__`, if there was one.
"""

from __future__ import annotations

from odradek.client.errors import BrokerError, ClientError, described
from odradek.common.error_codes import ErrorCode

_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_DECIDED_BY_COORDINATOR = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})
_FATAL = _FENCED | {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}


class TransactionError(ClientError):
    """The base of all errors of transactions."""


class TransactionStateError(TransactionError):
    """A call that is not allowed in the present state of the producer; nothing has changed."""


class TransactionAborted(TransactionError):
    """A record that was not sent because its transaction was aborted."""


class AbortableTransactionError(TransactionError):
    """The transaction cannot be committed: call `abort_transaction`, and begin a new one."""


class FatalTransactionError(TransactionError):
    """This producer can have no more transactions: close it, and create a new one."""


class ProducerFencedError(FatalTransactionError):
    """Another producer with the same transactional id has taken over, or the transaction timed out."""


def transaction_error(error: BaseException, *, from_partition: bool = False) -> TransactionError:
    """The error of the transaction in which a request or a batch failed with `error`.

    `from_partition`: reported by the leader of a partition. Only the coordinator knows that a producer is
    fenced or has no transaction: the abort that follows reports that.
    """
    if isinstance(error, TransactionError):
        return error
    kind: type[TransactionError] = AbortableTransactionError
    if isinstance(error, BrokerError):
        code = error.error_code
        if from_partition and code in _DECIDED_BY_COORDINATOR:
            kind = AbortableTransactionError
        elif code in _FENCED:
            kind = ProducerFencedError
        elif code in _FATAL:
            kind = FatalTransactionError
    made = kind(f"{_CONSEQUENCE[kind]}: {described(error)}")
    made.__cause__ = error
    return made


_CONSEQUENCE: dict[type[TransactionError], str] = {
    AbortableTransactionError: "the transaction can only be aborted",
    FatalTransactionError: "this producer can have no more transactions",
    ProducerFencedError: "another producer has taken over the transactional id, or the transaction timed out",
}
