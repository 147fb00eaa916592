"""Any bytes as a record batch: only typed errors, both kernel twins agree, memory stays bounded."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import tracemalloc
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

from crc32c import crc32c

from odradek.records.batch import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_SIZE, iterate_headers
from odradek.records.builder import build_batch
from odradek.records.compression import Codec, decompress
from odradek.records.errors import RecordsError
from odradek.records.kernels import batch_scan, record_index, record_objects
from odradek.records.kernels import record_check as kernels
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, ROW_WIDTH, SMALLEST_RECORD
from odradek.records.record import Record, index_batch, read_records
from odradek.records.validate import validate_for_log, validate_for_produce

MAX_BYTES = 64 * 1024
MEMORY_PER_BYTE = 100
FIXED_ALLOWANCE = 40_000


def _interpreted_twin(compiled: ModuleType) -> ModuleType:
    name = compiled.__name__.rpartition(".")[2]
    loader = importlib.machinery.SourceFileLoader(f"interpreted_{name}", _source_path(name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _source_path(name: str) -> str:
    spec = importlib.util.find_spec("odradek.records.kernels.layout")
    assert spec is not None
    assert spec.origin is not None
    return spec.origin.replace("layout.py", f"{name}.py")


COMPILED = (kernels, record_index, record_objects, batch_scan)
TWINS = tuple(map(_interpreted_twin, COMPILED))
INSTRUMENTED = TWINS


def _produce(batch: bytes) -> object:
    return validate_for_produce(batch, 0, max_message_bytes=1 << 20, max_decompressed_bytes=MAX_BYTES)


def _produce_keyed(batch: bytes) -> object:
    return validate_for_produce(
        batch, 0, max_message_bytes=1 << 20, max_decompressed_bytes=MAX_BYTES, requires_key=True
    )


def _log(batch: bytes) -> object:
    return validate_for_log(batch, 0, max_decompressed_bytes=MAX_BYTES)


def _read(batch: bytes) -> object:
    return read_records(batch, 0, max_bytes=MAX_BYTES)


def _index(batch: bytes) -> object:
    return index_batch(batch, 0, max_bytes=MAX_BYTES).count


def _headers(batch: bytes) -> object:
    return list(iterate_headers(batch))


READERS: tuple[Callable[[bytes], object], ...] = (_produce, _produce_keyed, _log, _read, _index, _headers)
CODECS = tuple(Codec)
CHOICES = 2 * len(CODECS) + len(CODECS)


def check(chosen: int, batch: bytes) -> None:
    """Read `batch` in every way there is; AssertionError where a promise breaks.

    The choice: for even numbers the CRC is made right first, so that the search gets past it; the last
    choices feed a bare decompressor.
    """
    chosen %= CHOICES
    if chosen >= 2 * len(CODECS):
        _bounded(
            lambda codec_input: decompress(CODECS[chosen - 2 * len(CODECS)], codec_input, MAX_BYTES), batch
        )
        return
    if chosen % 2 == 0:
        batch = with_right_crc(batch)
    for reader in READERS:
        _bounded(reader, batch)
    _twins_agree(batch)


def with_right_crc(batch: bytes) -> bytes:
    """The bytes with the length and CRC of their first batch corrected."""
    if len(batch) < HEADER_SIZE:
        return batch
    fixed = bytearray(batch)
    fixed[8:12] = (len(batch) - 12).to_bytes(4, "big")
    fixed[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(fixed[ATTRIBUTES_POSITION:]).to_bytes(4, "big")
    return bytes(fixed)


def _bounded(reader: Callable[[bytes], object], batch: bytes) -> None:
    tracing = tracemalloc.is_tracing()
    if tracing:
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with contextlib.suppress(RecordsError):
        reader(batch)
    if tracing:
        used = tracemalloc.get_traced_memory()[1] - before
        # A decompressed batch counts with its plain size, which the caller's limit bounds.
        limit = MEMORY_PER_BYTE * len(batch) + 20 * MAX_BYTES + FIXED_ALLOWANCE
        assert used <= limit, (batch.hex(), used)


def _twins_agree(batch: bytes) -> None:
    start = min(HEADER_SIZE, len(batch))
    count = batch[-1] if batch else 0
    rows = min(count, (len(batch) - start) // SMALLEST_RECORD + 1)
    results: list[Any] = []
    for checking, indexing, reading, scanning in (COMPILED, TWINS):
        table = memoryview(bytearray(max(1, rows) * ROW_WIDTH * 8)).cast("q")
        records: list[Record] = []
        scan = scanning.scan_batches(batch, 0, len(batch))
        results.append(
            (
                checking.check_records(batch, start, len(batch), count, count - 1, True, False, -1),
                checking.check_records(batch, start, len(batch), count, 200, False, True, -1),
                indexing.index_records(batch, start, len(batch), rows, table),
                table.tobytes(),
                reading.read_records(batch, start, len(batch), count, 7, 1000, False, records),
                repr(records),
                (scan.count, scan.stop, scan.position, scan.table[: scan.count * BATCH_ROW_WIDTH].tobytes()),
            )
        )
    assert results[0] == results[1], batch.hex()


def seed(chosen: int, random: Random) -> bytes:
    """A valid batch, or compressed bytes for the choices that only decompress."""
    chosen %= CHOICES
    codec = CODECS[chosen // 2 if chosen < 2 * len(CODECS) else chosen - 2 * len(CODECS)]
    batch = build_batch(
        [_record(offset, random) for offset in range(random.randint(1, 6))],
        codec=codec,
        producer_id=random.choice((-1, 9)),
        producer_epoch=0,
        base_sequence=0,
    )
    return bytes(batch) if chosen < 2 * len(CODECS) else bytes(batch[HEADER_SIZE:])


def _record(offset: int, random: Random) -> Record:
    return Record(
        offset,
        1_700_000_000_000 + random.randint(-5, 5),
        random.choice((None, b"", b"key")),
        random.choice((None, b"", b"value" * random.randint(1, 40))),
        tuple(("header", random.choice((None, b"x"))) for _ in range(random.randint(0, 2))),
    )
