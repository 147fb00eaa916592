"""Splits a batch that a broker finds too large into two with the same records in the same order. No I/O.

Halves are halved again until they fit, so that the limit of the topic need not be known. A batch of one
record cannot be split: that record has failed.
"""

from __future__ import annotations

from odradek.client.producer.batches.batch import ProducerBatch, smallest_batch_size
from odradek.client.producer.batches.idempotence import next_sequence
from odradek.records.batch import NO_SEQUENCE
from odradek.records.kernels.layout import HEADER_SIZE
from odradek.records.record import Record, read_records

MAX_DECOMPRESSED_BYTES = 2**31 - 1
# Deltas of time and offset are encoded again, and may take more bytes than in a batch of one record.
MOST_EXTRA_BYTES = 20


def split_batch(batch: ProducerBatch) -> list[ProducerBatch]:
    """Two batches of about the same size, with its sequences; threads that wait for it wait for them."""
    assert batch.payload is not None
    records = read_records(batch.payload, max_bytes=MAX_DECOMPRESSED_BYTES)
    middle = _middle(records)
    parts = [_part(batch, records[:middle]), _part(batch, records[middle:])]
    _share(batch, parts)
    batch.split_into(parts)
    return parts


def _middle(records: list[Record]) -> int:
    """How many records make half of the bytes; never none, never all."""
    sizes = [_size(record) for record in records]
    half, taken = sum(sizes) / 2, 0
    for count, size in enumerate(sizes, 1):
        taken += size
        if taken >= half:
            return min(count, len(records) - 1)
    return 1


def _size(record: Record) -> int:
    return smallest_batch_size(record.key, record.value, record.headers) - HEADER_SIZE


def _part(batch: ProducerBatch, records: list[Record]) -> ProducerBatch:
    capacity = HEADER_SIZE + sum(_size(record) + MOST_EXTRA_BYTES for record in records)
    part = ProducerBatch(batch.topic, batch.partition, capacity, batch.created_ms)
    for record in records:
        future = part.append(record.key, record.value, record.headers, record.timestamp_ms, None)
        assert future is not None
    return part


def _share(batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
    """The sequences and the buffer memory of the batch go to its parts."""
    first, second = parts
    first.reserved = batch.reserved // 2
    second.reserved = batch.reserved - first.reserved
    if batch.base_sequence == NO_SEQUENCE:
        return
    sequence = batch.base_sequence
    for part in parts:
        part.producer_id, part.producer_epoch = batch.producer_id, batch.producer_epoch
        part.base_sequence = sequence
        sequence = next_sequence(sequence, part.count)
