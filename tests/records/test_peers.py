"""Our batches in the hands of kafka-python and aiokafka, and theirs in ours: every codec they have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from odradek.records.batch import TimestampType
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.record import Record, read_records
from odradek.records.validate import validate_for_log, validate_for_produce
from records.peers import aiokafka_records, kafka_python_records
from records.samples import LIMIT, record_lists, some_records

PEERS = pytest.mark.parametrize(
    "peer", [aiokafka_records, kafka_python_records], ids=["aiokafka", "kafka-python"]
)
CODECS = pytest.mark.parametrize("codec", list(Codec))


def read_by(peer: Any, batch: bytes) -> list[Record]:
    reader = peer.DefaultRecordBatch(batch)
    assert reader.validate_crc()
    return [
        Record(
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            tuple((key, None if value is None else bytes(value)) for key, value in record.headers),
        )
        for record in reader
    ]


def built_by(peer: Any, records: list[Record], codec: Codec, **producer: Any) -> bytes:
    fields = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1} | producer
    settings = {"is_transactional": False, "batch_size": LIMIT} | fields
    builder = peer.DefaultRecordBatchBuilder(magic=2, compression_type=int(codec), **settings)
    for record in records:
        headers = [list(header) if peer is kafka_python_records else header for header in record.headers]
        builder.append(record.offset, record.timestamp_ms, record.key, record.value, headers)
    return bytes(builder.build())


@PEERS
@CODECS
def test_peers_read_our_batches(peer, codec):
    records = some_records(200)

    assert read_by(peer, bytes(build_batch(records, codec=codec))) == records


@PEERS
@CODECS
def test_we_read_peers_batches(peer, codec):
    records = some_records(200)

    batch = built_by(peer, records, codec, producer_id=5, producer_epoch=2, base_sequence=9)

    header = validate_for_produce(batch, max_message_bytes=LIMIT, max_decompressed_bytes=LIMIT)
    assert (header.codec, header.record_count, header.producer_id, header.base_sequence) == (codec, 200, 5, 9)
    assert read_records(batch, max_bytes=LIMIT) == records


@PEERS
@settings(max_examples=50)
@given(records=record_lists())
def test_uncompressed_batches_are_the_same_bytes(peer, records):
    # aiokafka takes a first timestamp of -1 for "none yet" and lets the next record set the base.
    records = [Record(r.offset, max(0, r.timestamp_ms), r.key, r.value, r.headers) for r in records]
    ours, theirs = bytes(build_batch(records)), built_by(peer, records, Codec.NONE)

    assert ours[:12] == theirs[:12]  # then comes the leader epoch, where kafka-python writes 0 instead of -1
    assert ours[16:] == theirs[16:]


@PEERS
def test_peers_see_log_append_time_and_the_attributes(peer):
    batch = build_batch(
        some_records(),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        is_transactional=True,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        max_timestamp_ms=1234,
    )
    reader = peer.DefaultRecordBatch(bytes(batch))

    assert [record.timestamp for record in reader] == [1234, 1234, 1234]
    reader = peer.DefaultRecordBatch(bytes(batch))
    assert (reader.is_transactional, reader.is_control_batch) == (True, False)
    assert (reader.producer_id, reader.base_offset) == (3, 0)


@PEERS
def test_peers_recognise_a_marker(peer):
    marker = EndTransactionMarker(ControlType.ABORT, 7)
    batch = build_end_transaction_marker(marker, producer_id=1, producer_epoch=0, timestamp_ms=5)

    reader = peer.DefaultRecordBatch(bytes(batch))

    assert reader.is_control_batch
    assert reader.is_transactional
    assert bytes(next(iter(reader)).key) == b"\x00\x00\x00\x00"


def test_we_keep_a_log_of_batches_by_all_of_them():
    for codec in Codec:
        for peer in (aiokafka_records, kafka_python_records):
            batch = built_by(peer, some_records(7), codec)
            assert validate_for_log(batch, max_decompressed_bytes=LIMIT).record_count == 7
