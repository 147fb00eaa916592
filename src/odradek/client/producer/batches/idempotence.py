# cython: annotation_typing=False
"""The order of one partition's batches: which may be sent next, and with which sequence. No I/O, no clock.

    closed  ->  numbered and in flight  ->  done
                        ^        |
                        +--retry-+

With idempotence a batch has the producer's id, an epoch and the sequence of its first record; a broker
takes only the next sequence, so that a batch sent twice is written once and a later one never overtakes.
When a batch fails for good, its sequence cannot be continued:

- Batches already numbered behind it keep their numbers. If the failed one was written after all, they are
  taken; if not, the broker reports them as out of order, which proves that it has none of them.
- Batches that have no number yet wait until all of those are done, then begin at 0 in the next epoch.

So no record is written twice and none overtakes, whatever the broker really did with the failed batch.
Without a transactional id, epochs count per partition here: a broker compares them per partition too. With
one they come only from the coordinator, and a batch that failed makes the transaction fail: the next one has
a new epoch, in which sequences begin at 0.

Compiled by Cython (idempotence.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from typing import NamedTuple

from odradek.client.producer.batches.batch import ProducerBatch
from odradek.common.ids import TopicPartition
from odradek.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

MAX_EPOCH = 2**15 - 1
MAX_SEQUENCE = 2**31 - 1


def next_sequence(sequence: int, count: int) -> int:
    """The sequence after a batch of so many records."""
    return (sequence + count) % (MAX_SEQUENCE + 1)


class ProducerId(NamedTuple):
    """The producer id and epoch from a broker."""

    producer_id: int
    epoch: int


class PartitionOrder:
    """The batches of one partition that were sent or will be. Owned by the sender.

    `sent` holds what is numbered and not done, in order; `retries` those of them that must be
    sent again. Once something must be repeated, batches go one at a time until all repetitions are through.
    """

    __slots__ = (
        "_epoch",
        "_is_known",
        "_max_in_flight",
        "_needs_new_epoch",
        "_producer_id",
        "_sequence",
        "partition",
        "retries",
        "sent",
    )

    def __init__(self, max_in_flight: int, partition: TopicPartition | None = None) -> None:
        self.partition = partition
        self.sent: list[ProducerBatch] = []
        self.retries: list[ProducerBatch] = []
        self._max_in_flight = max_in_flight
        self._producer_id = NO_PRODUCER_ID
        self._epoch = NO_PRODUCER_EPOCH
        self._sequence = 0
        self._needs_new_epoch = False
        # Whether the broker has a batch of this epoch. Until then it would take any number for the first,
        # so that a second batch could overtake the first where that must be repeated.
        self._is_known = False

    def next_batch(
        self, closed: deque[ProducerBatch], now_ms: float, producer: ProducerId | None
    ) -> ProducerBatch | None:
        """The batch that may be sent now, or None. Without `producer` batches are not numbered."""
        if self.retries:
            head = self.retries[0]
            if head is not self.sent[0] or head.retry_at_ms > now_ms:
                return None
            return self.retries.pop(0)
        if len(self.sent) >= self._max_in_flight or (self._needs_new_epoch and self.sent):
            return None
        if producer is not None and self.sent and not self._is_known:
            return None
        while closed:
            batch = closed.popleft()
            if not batch.is_done:  # it may have expired here
                self._append(batch, producer)
                return batch
        return None

    def _append(self, batch: ProducerBatch, producer: ProducerId | None) -> None:
        if producer is not None:
            self._begin_epoch(producer)
            batch.producer_id, batch.producer_epoch = self._producer_id, self._epoch
            batch.base_sequence = self._sequence
            self._sequence = next_sequence(self._sequence, batch.count)
        self.sent.append(batch)

    def _begin_epoch(self, producer: ProducerId) -> None:
        if self._producer_id != producer.producer_id or producer.epoch > self._epoch:
            self._producer_id, self._epoch, self._sequence = producer.producer_id, producer.epoch, 0
            self._is_known = False
        elif self._needs_new_epoch:
            self._epoch, self._sequence = self._epoch + 1, 0
            self._is_known = False
        self._needs_new_epoch = False

    def resume(self, producer: ProducerId, sequence: int) -> None:
        """Continue the sequence of another process, which sent up to `sequence` with this id and epoch."""
        self._producer_id, self._epoch, self._sequence = producer.producer_id, producer.epoch, sequence
        self._is_known = sequence > 0

    @property
    def sequence(self) -> int:
        """The sequence of the next record."""
        return self._sequence

    @property
    def is_exhausted(self) -> bool:
        """Whether epochs are used up, so that another producer id is needed."""
        return self._needs_new_epoch and self._epoch >= MAX_EPOCH - 1

    @property
    def retry_at_ms(self) -> float:
        """When the next batch may be repeated; infinity if a response must come first."""
        is_next = self.retries and self.retries[0] is self.sent[0]
        return self.retries[0].retry_at_ms if is_next else math.inf

    def delivered(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        self.sent.remove(batch)
        if (batch.producer_id, batch.producer_epoch) == (self._producer_id, self._epoch):
            self._is_known = True

    def repeat(self, batch: ProducerBatch, retry_at_ms: float) -> None:
        """Send it again, with the same sequence: it is unknown whether the broker has it."""
        batch.attempts += 1
        batch.retry_at_ms = retry_at_ms
        insort(self.retries, batch, key=self.sent.index)

    def put_back(self, batch: ProducerBatch) -> None:
        """It was not sent after all, so that it is sent first."""
        batch.retry_at_ms = 0.0
        insort(self.retries, batch, key=self.sent.index)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The broker finds it too large, so that it does not have it: its parts are sent instead."""
        place = self.sent.index(batch)
        self.sent[place : place + 1] = parts
        for part in parts:
            insort(self.retries, part, key=self.sent.index)

    def failed(self, batch: ProducerBatch) -> None:
        """It will not be sent again; its sequence is lost."""
        self._drop(batch)
        if batch.base_sequence != NO_SEQUENCE:
            self._needs_new_epoch = True

    def refused(self, batch: ProducerBatch, closed: deque[ProducerBatch], retry_at_ms: float) -> None:
        """The broker reports a wrong sequence, so that it does not have the batch.

        Behind others it waits for them; as the first one it needs another sequence.
        """
        if self.sent[0] is not batch:
            self.repeat(batch, retry_at_ms)
            return
        self._drop(batch)
        self._needs_new_epoch = True
        batch.attempts += 1
        # Behind those that came back before it: they were sent earlier.
        place = 0
        while place < len(closed) and closed[place].base_sequence != NO_SEQUENCE:
            place += 1
        closed.insert(place, batch)

    def _drop(self, batch: ProducerBatch) -> None:
        self.sent.remove(batch)
        if batch in self.retries:
            self.retries.remove(batch)
