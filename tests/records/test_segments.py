"""Segments that Apache Kafka wrote: read to the last record, equal to what other code read in them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.records.arrow import read_table
from odradek.records.batch import BatchHeader, TimestampType, has_valid_crc, iterate_headers
from odradek.records.compression import Codec
from odradek.records.control import ControlType, read_end_transaction_marker
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import Stop
from odradek.records.record import read_records
from odradek.records.validate import validate_for_log
from records.samples import LIMIT

SEGMENTS = Path(__file__).parents[1] / "data" / "segments"
FOLDERS = sorted(path for path in SEGMENTS.iterdir() if path.is_dir())


def log_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def decoded(content: str | None) -> bytes | None:
    return None if content is None else base64.b64decode(content)


@pytest.fixture(params=FOLDERS, ids=[folder.name for folder in FOLDERS])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_the_folders_are_all_there():
    assert [folder.name for folder in FOLDERS] == [
        "compacted",
        "java",
        "librdkafka",
        "log-append-time",
        "transactions",
    ]


def test_every_batch_is_sound(folder):
    log = log_of(folder)

    for position, header in iterate_headers(log):
        assert has_valid_crc(log, position, header)
        assert validate_for_log(log, position, max_decompressed_bytes=LIMIT) == header
    assert scan_batches(log, 0, len(log)).stop is Stop.AT_END


def test_records_are_those_that_confluent_kafka_consumed(folder):
    log = log_of(folder)
    expected = json.loads((folder / "expected.json").read_text())

    found = [
        (record, header)
        for position, header in iterate_headers(log)
        if not header.is_control
        for record in read_records(log, position, max_bytes=LIMIT)
    ]

    assert [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "is_log_append_time": header.timestamp_type is TimestampType.LOG_APPEND_TIME,
            "key": record.key,
            "value": record.value,
            "headers": [list(pair) for pair in record.headers],
        }
        for record, header in found
    ] == [
        row
        | {
            "key": decoded(row["key"]),
            "value": decoded(row["value"]),
            "headers": [[key, decoded(value)] for key, value in row["headers"]],
        }
        for row in expected
    ]


def test_arrow_reads_the_same(folder):
    expected = json.loads((folder / "expected.json").read_text())

    table = read_table(log_of(folder), max_bytes=LIMIT)

    assert table["offset"].to_pylist() == [row["offset"] for row in expected]
    assert table["value"].to_pylist() == [decoded(row["value"]) for row in expected]
    assert [len(headers) for headers in table["headers"].to_pylist()] == [
        len(row["headers"]) for row in expected
    ]


def as_kafka_prints(position: int, header: BatchHeader) -> dict[str, Any]:
    is_append = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    horizon = f"[{header.base_timestamp_ms}]" if header.has_delete_horizon else ".empty"
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": str(header.is_transactional).lower(),
        "isControl": str(header.is_control).lower(),
        "deleteHorizonMs": f"OptionalLong{horizon}",
        "position": position,
        "LogAppendTime" if is_append else "CreateTime": header.max_timestamp_ms,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "compresscodec": header.codec.name.lower(),
        "crc": header.crc,
        "isvalid": "true",
    }


def test_headers_are_those_that_dump_log_segments_printed(folder):
    printed = re.findall(r"^baseOffset: .*$", (folder / "dump.txt").read_text(), re.MULTILINE)

    ours = [
        " ".join(f"{name}: {field}" for name, field in as_kafka_prints(position, header).items())
        for path in sorted(folder.glob("*.log"))
        for position, header in iterate_headers(path.read_bytes())
    ]

    assert ours == [line.strip() for line in printed]


def test_markers_are_those_that_dump_log_segments_printed(folder):
    printed = re.findall(
        r"offset: (\d+) .* endTxnMarker: (\w+) coordinatorEpoch: (\d+)", (folder / "dump.txt").read_text()
    )
    log = log_of(folder)

    ours = []
    for position, header in iterate_headers(log):
        for record in read_records(log, position, max_bytes=LIMIT) if header.is_control else ():
            marker = read_end_transaction_marker(record)
            ours.append((str(record.offset), marker.control_type.name, str(marker.coordinator_epoch)))

    assert ours == printed


def test_the_test_data_shows_what_it_is_kept_for():
    headers = {folder.name: [header for _, header in iterate_headers(log_of(folder))] for folder in FOLDERS}

    assert {header.codec for header in headers["java"]} == set(Codec)
    assert {header.codec for header in headers["librdkafka"]} == set(Codec)
    compacted = headers["compacted"]
    assert any(header.record_count == 0 for header in compacted)
    assert any(header.has_delete_horizon for header in compacted)
    assert any(header.record_count < header.last_offset_delta + 1 for header in compacted)
    markers = (SEGMENTS / "transactions" / "dump.txt").read_text()
    assert {ControlType.COMMIT.name, ControlType.ABORT.name} <= set(
        re.findall(r"endTxnMarker: (\w+)", markers)
    )
