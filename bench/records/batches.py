"""Index, read, validate and encode the records of a batch, beside aiokafka's and kafka-python's record code.

.venv/bin/python bench/records/batches.py [ROUNDS]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.records.batch import HEADER_SIZE
from odradek.records.builder import build_batch_from_columns
from odradek.records.kernels.encoding import encode_records
from odradek.records.kernels.layout import ROW_WIDTH
from odradek.records.kernels.record_index import index_records
from odradek.records.record import index_batch, read_records
from odradek.records.validate import validate_for_produce

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Report, measure

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka.record import default_records as aiokafka_records
    from kafka.record import default_records as kafka_python_records

LIMIT = 1 << 26
TIME_MS = 1_700_000_000_000
SIZES = (150, 10_000)  # a batch of about 16 KiB, and one of about 1 MiB

Columns = tuple[list[bytes | None], list[bytes | None], list[int]]
Candidates = dict[str, Callable[[], object]]


def columns(count: int) -> Columns:
    """Keys of 8 bytes, values of 100."""
    keys: list[bytes | None] = [b"%08d" % i for i in range(count)]
    values: list[bytes | None] = [b"v" * 100 for _ in range(count)]
    return keys, values, [TIME_MS + i for i in range(count)]


def peer_build(peer: Any, content: Columns) -> bytes:
    builder = peer.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, LIMIT)
    for offset, (key, value, timestamp_ms) in enumerate(zip(*content, strict=True)):
        builder.append(offset, timestamp_ms, key, value, [])
    return bytes(builder.build())


def peer_walk(peer: Any, batch: bytes) -> None:
    """The peers cannot index: the least that they can do is to make every record."""
    for _ in peer.DefaultRecordBatch(batch):
        pass


def peer_validate(peer: Any, batch: bytes) -> None:
    peer.DefaultRecordBatch(batch).validate_crc()
    peer_walk(peer, batch)


def against_peers(ours: Callable[[], object], theirs: Callable[[Any], object]) -> Candidates:
    return {
        "odradek": ours,
        "aiokafka": lambda: theirs(aiokafka_records),
        "kafka-python": lambda: theirs(kafka_python_records),
    }


def contests(count: int) -> dict[str, Candidates]:
    content = columns(count)
    keys, values, timestamps_ms = content
    batch = bytes(build_batch_from_columns(keys, values, timestamps_ms))
    table = memoryview(bytearray(count * ROW_WIDTH * 8)).cast("q")
    return {
        "index, the kernel alone": {
            "odradek": lambda: index_records(batch, HEADER_SIZE, len(batch), count, table)
        },
        "index": against_peers(
            lambda: index_batch(batch, max_bytes=LIMIT), lambda peer: peer_walk(peer, batch)
        ),
        "read into objects": against_peers(
            lambda: read_records(batch, max_bytes=LIMIT), lambda peer: list(peer.DefaultRecordBatch(batch))
        ),
        "validate": against_peers(
            lambda: validate_for_produce(batch, max_message_bytes=LIMIT, max_decompressed_bytes=LIMIT),
            lambda peer: peer_validate(peer, batch),
        ),
        "encode lists of bytes": against_peers(
            lambda: encode_records(keys, values, timestamps_ms, TIME_MS, None, None, 61),
            lambda peer: peer_build(peer, content),
        ),
        "build a batch from lists": against_peers(
            lambda: build_batch_from_columns(keys, values, timestamps_ms),
            lambda peer: peer_build(peer, content),
        ),
    }


def main(rounds: int) -> None:
    report = Report("Records: 8-byte keys, 100-byte values")
    for count in SIZES:
        for what, candidates in contests(count).items():
            report.add(f"{what}, {count} records", measure(candidates, rounds), count, "records")
    report.show()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
