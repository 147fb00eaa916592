"""One batch, record, index entry or producer as names and values: the names, and order, of Kafka's dump."""

from __future__ import annotations

from typing import Any

from odradek.log.producers.producer_states import ProducerEntry
from odradek.log.segment.txn_index import VERSION as TXN_INDEX_VERSION
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.batch import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_SEQUENCE, BatchHeader
from odradek.records.compression import Codec
from odradek.records.control import ControlType, read_control_type, read_end_transaction_marker
from odradek.records.errors import InvalidRecord
from odradek.records.record import Record

Fields = dict[str, Any]

_CODEC_NAMES = {int(codec): codec.name.lower() for codec in Codec}
_MAX_SEQUENCE = 2**31 - 1


def batch_fields(position: int, header: BatchHeader, is_valid: bool) -> Fields:
    """One batch; `is_valid` says that its CRC fits."""
    codec_number = header.attributes & CODEC_MASK
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp_ms if header.has_delete_horizon else None,
        "position": position,
        time_name(header): header.max_timestamp_ms,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "compresscodec": _CODEC_NAMES.get(codec_number, f"unknown({codec_number})"),
        "crc": header.crc,
        "isvalid": is_valid,
    }


def record_fields(header: BatchHeader, record: Record) -> Fields:
    """One record of a batch, without its content; for a control record, its type."""
    key, value = record.key, record.value
    fields = {
        "offset": record.offset,
        time_name(header): record.timestamp_ms,
        "keySize": -1 if key is None else len(key),
        "valueSize": -1 if value is None else len(value),
        "sequence": _sequence(header, record),
        "headerKeys": [name for name, _ in record.headers],
    }
    return fields | _control_fields(record) if header.attributes & CONTROL_FLAG else fields


def time_name(header: BatchHeader) -> str:
    """What Kafka calls the time of the batch's records."""
    return "LogAppendTime" if header.attributes & LOG_APPEND_TIME_FLAG else "CreateTime"


def _sequence(header: BatchHeader, record: Record) -> int:
    """Sequence numbers wrap to 0 after 2**31 - 1."""
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + record.offset - header.base_offset) & _MAX_SEQUENCE


def _control_fields(record: Record) -> Fields:
    try:
        control_type = read_control_type(record.key)
        if control_type not in (ControlType.ABORT, ControlType.COMMIT):
            return {"controlType": f"{control_type.name}({control_type.value})"}
        marker = read_end_transaction_marker(record)
    except InvalidRecord as error:
        return {"controlType": f"damaged: {error}"}
    return {"endTxnMarker": marker.control_type.name, "coordinatorEpoch": marker.coordinator_epoch}


def aborted_fields(aborted: AbortedTxn) -> Fields:
    """One entry of a transaction index."""
    return {
        "version": TXN_INDEX_VERSION,
        "producerId": aborted.producer_id,
        "firstOffset": aborted.first_offset,
        "lastOffset": aborted.last_offset,
        "lastStableOffset": aborted.last_stable_offset,
    }


def producer_fields(entry: ProducerEntry) -> Fields:
    """One entry of a producer snapshot."""
    open_since = entry.current_txn_first_offset
    fields: Fields = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": open_since if open_since >= 0 else None,
        "lastTimestamp": entry.last_timestamp_ms,
    }
    for batch in entry.batches[:1]:
        fields |= {
            "firstSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "lastOffset": batch.last_offset,
            "offsetDelta": batch.offset_delta,
            "timestamp": batch.timestamp_ms,
        }
    return fields
