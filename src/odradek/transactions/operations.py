"""Begin, extend, verify and end transactions: operations on the state of a shard. Pure.

How EndTxn is answered where nothing is open, with transactions v2:

    state            abort, epoch before   abort, present epoch   commit, epoch before   commit, present epoch
    Empty            PRODUCER_FENCED       epoch is raised        PRODUCER_FENCED        INVALID_TXN_STATE
    CompleteAbort    repeated: NONE        epoch is raised        INVALID_TXN_STATE      INVALID_TXN_STATE
    CompleteCommit   INVALID_TXN_STATE     epoch is raised        repeated: NONE         INVALID_TXN_STATE

In PrepareCommit and PrepareAbort the present epoch gets CONCURRENT_TRANSACTIONS until the markers are there.
With v1 only the present epoch is accepted: the same end again is NONE, everything else INVALID_TXN_STATE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.result import Result
from odradek.transactions.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    InvalidTxnState,
    ProducerFenced,
)
from odradek.transactions.state import TransactionsState
from odradek.transactions.transaction import (
    EPOCH_BUMP_FROM,
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    ProducerIdNeeded,
    Transaction,
    TransactionState,
)

PartitionErrors = Mapping[TopicPartition, ErrorCode]

NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True)
class Initialization:
    """An InitProducerId request; `expected` is what a producer continues with (KIP-360)."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None


@dataclass(frozen=True, slots=True)
class PartitionsRequest:
    """A request of a producer about partitions of its transaction."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[TopicPartition]
    client_version: int = 0


@dataclass(frozen=True, slots=True)
class EndRequest:
    """An EndTxn request."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    is_commit: bool
    client_version: int = 0


@dataclass(frozen=True, slots=True)
class Initialized:
    """The producer id and epoch to go on with, or CONCURRENT_TRANSACTIONS: an open one is aborted first."""

    producer: ProducerIdAndEpoch
    error_code: ErrorCode = ErrorCode.NONE


# InitProducerId


def initialize(
    state: TransactionsState, request: Initialization, new_producer_id: int | None, now_ms: int
) -> Result[Initialized]:
    """Begin a new epoch of the id; ProducerIdNeeded if that takes a new producer id and none is given."""
    if not 0 < request.timeout_ms <= state.settings.max_timeout_ms:
        raise InvalidTransactionTimeout(request.timeout_ms, state.settings.max_timeout_ms)
    known = state.find(request.transactional_id)
    if known is None:
        producer_id = _given(new_producer_id)
        created = Transaction(request.transactional_id, producer_id, request.timeout_ms)
        return _initialized(state, created.with_next_epoch(request.timeout_ms, now_ms))
    if request.expected is not None and not _is_own(known, request.expected):
        raise ProducerFenced(request.transactional_id, request.expected.producer_epoch, known.producer_epoch)
    if known.is_prepared:
        raise ConcurrentTransactions(f"{request.transactional_id}: {known.state.label}")
    if known.state is TransactionState.ONGOING:
        fenced = known.fenced(state.settings.transaction_version, now_ms)
        return state.change(fenced, Initialized(NO_PRODUCER, ErrorCode.CONCURRENT_TRANSACTIONS))
    return _initialized(state, _next(known, request, new_producer_id, now_ms))


def _is_own(known: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer may go on; the epoch is checked where it is raised.

    The former producer id is valid where its epochs are used up: the response with the new one may be lost.
    """
    return (
        known.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == known.producer_id
        or (expected.producer_id == known.previous_producer_id and expected.is_exhausted)
    )


def _next(
    known: Transaction, request: Initialization, new_producer_id: int | None, now_ms: int
) -> Transaction:
    expected = request.expected
    if expected is None:
        if known.is_exhausted:
            return known.rotated(_given(new_producer_id), NO_PRODUCER_EPOCH, request.timeout_ms, now_ms)
        return known.with_next_epoch(request.timeout_ms, now_ms)
    epoch = expected.producer_epoch
    # One that was fenced in its last epoch may go on from there, but not in the epoch above it.
    is_last = known.is_fenced_for_good and epoch == known.last_producer_epoch
    if is_last or (known.is_exhausted and epoch == known.producer_epoch):
        return known.rotated(_given(new_producer_id), epoch, request.timeout_ms, now_ms)
    renewed = known.continued(epoch, request.timeout_ms, now_ms)
    if renewed is None:
        raise ProducerFenced(known.transactional_id, epoch, known.producer_epoch)
    return renewed


def _initialized(state: TransactionsState, transaction: Transaction) -> Result[Initialized]:
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    return state.change(transaction, Initialized(producer))


def _given(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id


# AddPartitionsToTxn, AddOffsetsToTxn


def add_partitions(state: TransactionsState, request: PartitionsRequest, now_ms: int) -> Result[None]:
    """Add partitions to the transaction, or begin one with them."""
    known = _owned(state, request)
    if known.state is TransactionState.ONGOING and request.partitions <= known.partitions:
        return Result()
    return state.change(known.with_partitions(request.partitions, request.client_version, now_ms), None)


def verify_partitions(state: TransactionsState, request: PartitionsRequest) -> PartitionErrors:
    """Which partitions are part of the open transaction; TRANSACTION_ABORTABLE for those that are not."""
    known = _owned(state, request)
    return {
        partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in request.partitions
    }


def _owned(state: TransactionsState, request: PartitionsRequest) -> Transaction:
    """The transaction, if it is this producer's and not being ended."""
    known = _found(state, request.transactional_id)
    producer = request.producer
    # A new producer id is in use as soon as the client has it, which is before the markers are written.
    is_following = known.is_prepared and producer == _following(known)
    if known.producer_id != producer.producer_id and not is_following:
        raise InvalidProducerIdMapping(f"{request.transactional_id!r} has producer id {known.producer_id}")
    if known.producer_epoch != producer.producer_epoch and not is_following:
        raise ProducerFenced(request.transactional_id, producer.producer_epoch, known.producer_epoch)
    if known.is_prepared:
        raise ConcurrentTransactions(f"{request.transactional_id}: {known.state.label}")
    return known


def _found(state: TransactionsState, transactional_id: str) -> Transaction:
    known = state.find(transactional_id)
    if known is None:
        raise InvalidProducerIdMapping(f"unknown transactional id {transactional_id!r}")
    return known


# EndTxn


def end(
    state: TransactionsState, request: EndRequest, new_producer_id: int | None, now_ms: int
) -> Result[ProducerIdAndEpoch]:
    """Decide the end of a transaction; with v2 the producer id and epoch of the next one are returned."""
    if request.client_version >= EPOCH_BUMP_FROM:
        return _end_v2(state, request, new_producer_id, now_ms)
    known, producer = _found(state, request.transactional_id), request.producer
    if known.producer_id != producer.producer_id:
        raise InvalidProducerIdMapping(f"{request.transactional_id!r} has producer id {known.producer_id}")
    if known.producer_epoch != producer.producer_epoch:
        raise ProducerFenced(request.transactional_id, producer.producer_epoch, known.producer_epoch)
    if known.state is TransactionState.ONGOING:
        ended = known.ended(
            is_commit=request.is_commit, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
        return state.change(ended, NO_PRODUCER)
    _check_repetition(known, request)
    return Result(response=NO_PRODUCER)


def _check_repetition(known: Transaction, request: EndRequest) -> None:
    """Raise unless the transaction has been ended in this very way."""
    is_same = known.is_commit == request.is_commit and known.state is not TransactionState.EMPTY
    if not is_same:
        what = "commit" if request.is_commit else "abort"
        raise InvalidTxnState(f"{request.transactional_id}: cannot {what} in state {known.state.label}")
    if known.is_prepared:
        raise ConcurrentTransactions(f"{request.transactional_id}: {known.state.label}")


def _end_v2(
    state: TransactionsState, request: EndRequest, new_producer_id: int | None, now_ms: int
) -> Result[ProducerIdAndEpoch]:
    known, producer = _found(state, request.transactional_id), request.producer
    is_repeated = _is_repeated(known, producer)
    if known.producer_id != producer.producer_id and not is_repeated:
        raise InvalidProducerIdMapping(f"{request.transactional_id!r} has producer id {known.producer_id}")
    if known.is_prepared and producer == (known.producer_id, known.producer_epoch):
        # Nothing was added to the next transaction, and the markers of this one are being written.
        raise ConcurrentTransactions(f"{request.transactional_id}: {known.state.label}")
    if not _is_valid_epoch(known, producer, is_repeated=is_repeated):
        raise ProducerFenced(request.transactional_id, producer.producer_epoch, known.producer_epoch)
    if is_repeated and known.state is not TransactionState.ONGOING:
        _check_repetition(known, request)
        if known.is_fenced_for_good:
            known = known.replaced(_given(new_producer_id), now_ms)
            return state.change(known, _following(known))
        return Result(response=_following(known))
    if request.is_commit and known.state is not TransactionState.ONGOING:
        raise InvalidTxnState(f"{request.transactional_id}: cannot commit in state {known.state.label}")
    ended = known.ended(
        is_commit=request.is_commit,
        client_version=request.client_version,
        next_producer_id=_given(new_producer_id) if known.is_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )
    return state.change(ended, _following(ended))


def _following(ended: Transaction) -> ProducerIdAndEpoch:
    """The producer id and epoch of the next transaction."""
    if ended.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(ended.next_producer_id, 0)
    return ProducerIdAndEpoch(ended.producer_id, ended.producer_epoch)


def _is_repeated(known: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Whether the producer has the epoch before the end that was decided, or the used-up id before it."""
    is_former_id = (
        known.previous_producer_id == producer.producer_id
        and producer.producer_epoch == LAST_CLIENT_EPOCH
        and known.producer_epoch == 0
    )
    return is_former_id or (
        known.producer_id == producer.producer_id and known.producer_epoch == producer.producer_epoch + 1
    )


def _is_valid_epoch(known: Transaction, producer: ProducerIdAndEpoch, *, is_repeated: bool) -> bool:
    is_present = producer.producer_epoch == known.producer_epoch
    if known.state in (TransactionState.ONGOING, TransactionState.EMPTY):
        return is_present
    return is_repeated or (is_present and not known.is_prepared)


# The markers are written


def complete(
    state: TransactionsState, transactional_id: str, producer: ProducerIdAndEpoch, now_ms: int
) -> Result[None]:
    """All markers of the decided transaction are written."""
    known = state.find(transactional_id)
    if known is None or not known.is_prepared:
        return Result()
    if producer != (known.producer_id, known.producer_epoch):
        return Result()
    return state.change(known.completed(now_ms), None)


def require_id(transactional_id: str) -> None:
    """INVALID_REQUEST for an empty transactional id."""
    if not transactional_id:
        raise KafkaError("the transactional id is empty", error_code=ErrorCode.INVALID_REQUEST)
