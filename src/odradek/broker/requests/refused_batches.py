"""Batches of idempotent producers that were refused and are sent again: nothing must overtake them.

A producer has several batches in flight. If the first is refused, since this broker does not lead the
partition yet, and the next is judged a moment later, it is out of order. If the producer is unknown here, it
is even appended, and then the first is out of order for ever. So what follows a refused batch on its
connection is refused with the same error. Apache Kafka judges each batch by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from functools import partial
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.log.producers.producer_states import BATCHES_KEPT, MAX_SEQUENCE
from odradek.net.connection import Connection
from odradek.records.batch import HEADER_SIZE, PRODUCER_POSITION, Buffer

KEPT_MS = 2000
"""What was in flight with a refused batch has arrived after this time."""

_PRODUCER = struct.Struct(">qhi")


class _Refused:
    __slots__ = ("error_code", "following", "producer_epoch", "sequence", "until_ms")

    def __init__(self, error_code: ErrorCode, producer_epoch: int, sequence: int, until_ms: int) -> None:
        self.error_code = error_code
        self.producer_epoch = producer_epoch
        self.sequence = sequence
        self.until_ms = until_ms
        self.following = 0


class RefusedBatches:
    """By connection, partition and producer id. Owned by the broker's services, on the loop.

    `is_empty` is for the handler on the hot path.
    """

    __slots__ = ("_by_connection", "is_empty")

    def __init__(self) -> None:
        self._by_connection: dict[Connection, dict[Hashable, _Refused]] = {}
        self.is_empty = True

    def note(
        self,
        connection: Connection,
        partition: Hashable,
        records: Buffer | None,
        error_code: ErrorCode,
        now_ms: int,
    ) -> None:
        """This batch was refused, and nothing of it was appended."""
        producer = _producer_of(records)
        if producer is None or not error_code.is_retriable:
            return
        producer_id, producer_epoch, sequence = producer
        known = self._by_connection.get(connection)
        if known is None:
            known = self._by_connection[connection] = {}
            connection.at_close[self] = partial(self._forget, connection)
            self.is_empty = False
        key = (partition, producer_id)
        if key not in known:
            known[key] = _Refused(error_code, producer_epoch, sequence, now_ms + KEPT_MS)

    def check(self, connection: Connection, partition: Hashable, records: Buffer | None, now_ms: int) -> None:
        """Raise for a batch that follows a refused one, which must be appended first."""
        known = self._by_connection.get(connection)
        producer = None if known is None else _producer_of(records)
        if known is None or producer is None:
            return
        producer_id, producer_epoch, sequence = producer
        refused = known.get((partition, producer_id))
        if refused is None:
            return
        if _follows(refused, producer_epoch, sequence) and now_ms < refused.until_ms:
            refused.following += 1
            if refused.following < BATCHES_KEPT:
                raise KafkaError(
                    f"the batch before it, sequence {refused.sequence}, was refused",
                    error_code=refused.error_code,
                )
        del known[partition, producer_id]
        if not known:
            connection.at_close.pop(self, None)
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._by_connection.pop(connection, None)
        self.is_empty = not self._by_connection


def _follows(refused: _Refused, producer_epoch: int, sequence: int) -> bool:
    """Whether the sequence is in the first half of all that come after the refused one: they wrap."""
    distance = (sequence - refused.sequence) & MAX_SEQUENCE
    return producer_epoch == refused.producer_epoch and 0 < distance <= MAX_SEQUENCE // 2


def _producer_of(records: Any) -> tuple[int, int, int] | None:
    """Producer id, epoch and first sequence; None for a batch without."""
    if not records or len(records) < HEADER_SIZE:
        return None
    producer_id, producer_epoch, sequence = _PRODUCER.unpack_from(records, PRODUCER_POSITION)
    return None if producer_id < 0 else (producer_id, producer_epoch, sequence)
