"""What can go wrong when a micro-batch is one transaction, each as one sentence that says what to do."""

from __future__ import annotations

from odradek.client.errors import BrokerError, described
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError


class TransactionFailed(OdradekError):
    """The transaction of a micro-batch could not be begun or committed."""


class FencedByOtherDriver(TransactionFailed):
    """Another driver has begun under the same name; this one must stop."""


class TransactionTooLong(TransactionFailed):
    """The brokers aborted the transaction, because the micro-batch took longer than its time-out."""


class OtherCheckpoint(TransactionFailed):
    """What the group has was committed by another checkpoint, or by somebody else."""


class RepeatedTask(TransactionFailed):
    """Spark repeated a task; only the whole micro-batch can be repeated."""


class ForgottenByBrokers(TransactionFailed):
    """The transactional id has expired: the next transaction needs a new producer id."""


_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_LOST = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE})


def too_long(name: str, elapsed_ms: float, timeout_ms: int) -> TransactionTooLong:
    """The sentence for a micro-batch that took longer than its transaction may."""
    return TransactionTooLong(
        f"the transaction of {name!r} was open for {elapsed_ms / 1000:.0f} s, and the brokers abort it "
        f"after {timeout_ms} ms: raise kafka.transaction.timeout.ms, or make micro-batches smaller; "
        f"nothing of this one is visible"
    )


def fenced(name: str) -> FencedByOtherDriver:
    """The sentence for a driver that is not the newest one of its query."""
    return FencedByOtherDriver(
        f"another driver has begun under the name {name!r} and has fenced this one, which stops; "
        f"nothing of its open micro-batch is visible"
    )


def failure_of(
    error: BaseException, name: str, elapsed_ms: float, timeout_ms: int, *, is_ending: bool = False
) -> TransactionFailed:
    """The sentence for an error of the coordinator, `elapsed_ms` after the transaction was begun.

    `is_ending`: the coordinator was asked to commit, so that without its answer nobody knows whether it has.
    """
    code = error.error_code if isinstance(error, BrokerError) else None
    if code in _FENCED | _LOST and elapsed_ms >= timeout_ms:
        return too_long(name, elapsed_ms, timeout_ms)
    if code in _FENCED:
        return fenced(name)
    if code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
        return ForgottenByBrokers(
            f"the brokers have forgotten the transactional id {name!r}, which was not used for their "
            f"transactional.id.expiration.ms; nothing of this micro-batch is visible: start the query again"
        )
    if code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return TransactionFailed(
            f"no permission for the transactional id {name!r}, which is the name of the query: "
            f"allow Write and Describe on it"
        )
    if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return TransactionFailed(
            f"no permission for the group {name!r}, which is the name of the query: allow Read on it"
        )
    if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return TransactionFailed(
            f"the brokers refuse transactions of {timeout_ms} ms: set kafka.transaction.timeout.ms to at "
            f"most their transaction.max.timeout.ms"
        )
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        return TransactionFailed(f"consumers use the group {name!r}: give the query another name")
    if is_ending and code is None:
        return TransactionFailed(
            f"the transaction of {name!r} was to be committed, and whether it was, shows when the query is "
            f"started again: {described(error)}"
        )
    return TransactionFailed(
        f"the transaction of {name!r} failed, and nothing of it is visible: {described(error)}"
    )
