"""Batches to and from Arrow, without a Python object per record.

    column          Arrow type                                    meaning
    offset          int64
    timestamp       timestamp[ms, UTC]                            of the record, or of the append
    timestamp_type  int8                                          TimestampType
    partition       int32                                         what the caller says
    key             binary                                        null: none
    value           binary                                        null: none
    headers         list<struct<key: string, value: binary>>      empty: none; never null

A timestamp of -1 ms is Kafka's "no timestamp" and stays so. A header key that is not UTF-8 gets replacement
characters, as in Java. Control batches hold no user's records and are left out.

`binary` counts in 32 bits, so that no chunk may pass 2 GiB; a table of any size is made of chunks of
`chunk_bytes` (32 MiB) or so. Reading more than that at once: `read_record_batches` gives them one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.common.errors import OdradekError
from odradek.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    has_valid_crc,
    iterate_headers,
)
from odradek.records.builder import finish_batch
from odradek.records.compression import Codec
from odradek.records.errors import CorruptBatch, InvalidRecord
from odradek.records.kernels.column_sinks import RecordsSink
from odradek.records.kernels.columns import BytesSource, RecordSource, partition_keys
from odradek.records.kernels.layout import HEADER_SIZE
from odradek.records.kernels.record_check import new_bytearray
from odradek.records.record import PlainRecords, append_columns, plain_records

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_CHUNK_BYTES = 32 * 1024 * 1024
DEFAULT_BATCH_BYTES = 1024 * 1024
_RECORD_OVERHEAD_BYTES = 6
"""What a record takes beside its fields, less the 4 bytes that Arrow takes for the end of each."""
_MAX_CHUNK_BYTES = 2**31 - 1

BytesBuffers = tuple[int, Any, Any, Any]
"""The number of nulls, validity, offsets, content."""


class EncodedRows(NamedTuple):
    """Records of one batch to be, after HEADER_SIZE free bytes."""

    encoded: memoryview
    record_count: int
    base_timestamp_ms: int
    max_timestamp_ms: int


@cache
def schema() -> pa.Schema:
    """The columns of every table that is read here."""
    pa = _pyarrow()
    header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("timestamp_type", pa.int8(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(pa.field("item", header, nullable=False)), nullable=False),
        ]
    )


def read_table(
    buffer: Buffer,
    *,
    max_bytes: int,
    partition: int = 0,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
    checks_crc: bool = True,
) -> pa.Table:
    """All records of the batches in `buffer` as one table."""
    chunks = read_record_batches(
        buffer, max_bytes=max_bytes, partition=partition, chunk_bytes=chunk_bytes, checks_crc=checks_crc
    )
    return _pyarrow().Table.from_batches(list(chunks), schema())


def read_record_batches(
    buffer: Buffer,
    *,
    max_bytes: int,
    partition: int = 0,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
    checks_crc: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The records of the batches in `buffer`, in Arrow chunks of about `chunk_bytes`.

    No batch may decompress to more than `max_bytes`. Damage raises a RecordsError before its chunk is given.
    """
    pending: list[tuple[BatchHeader, PlainRecords]] = []
    pending_bytes = 0
    for position, header in iterate_headers(buffer):
        if checks_crc and not has_valid_crc(buffer, position, header):
            raise CorruptBatch(f"the batch does not have the CRC {header.crc:#010x} that it claims", position)
        if header.is_control or header.record_count == 0:
            continue
        plain = plain_records(buffer, position, header, min(max_bytes, _MAX_CHUNK_BYTES))
        size = plain.end - plain.start
        if pending and pending_bytes + size > min(chunk_bytes, _MAX_CHUNK_BYTES):
            yield _gathered(pending, pending_bytes, partition)
            pending, pending_bytes = [], 0
        pending.append((header, plain))
        pending_bytes += size
    if pending:
        yield _gathered(pending, pending_bytes, partition)


def build_batches(
    table: pa.Table,
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    max_batch_bytes: int = DEFAULT_BATCH_BYTES,
    keeps_offsets: bool = False,
) -> Iterator[tuple[int, bytearray]]:
    """Batches of at most `max_batch_bytes` before compression (a larger record gets its own), by partition.

    `value` and `timestamp` must be there; `key`, `headers`, `partition` need not. The rows of a partition
    keep their order. Offsets begin at 0 in each batch, as a producer's do, unless `keeps_offsets` says that
    the column `offset` is a log's. `timestamp_type` is not looked at: every batch has create time.
    """
    for chunk in table.combine_chunks().to_batches():
        for partition, rows in _by_partition(chunk):
            for batch in _encode(rows, keeps_offsets, codec, level, max_batch_bytes):
                yield partition, batch


# Reading.


def _gathered(pending: list[tuple[BatchHeader, PlainRecords]], size: int, partition: int) -> pa.RecordBatch:
    sink = new_sink()
    sink.reserve(sum(plain.count(header) for header, plain in pending), size)
    for header, plain in pending:
        append_columns(sink, header, plain)
    return _pyarrow().RecordBatch.from_arrays(arrays(sink, partition), schema=schema())


def new_sink() -> RecordsSink:
    """A sink with memory of Arrow's own, which is reused: fresh pages cost more than all that fills them."""
    return RecordsSink(_pyarrow().allocate_buffer)


def arrays(sink: RecordsSink, partition: int) -> list[Any]:
    """What a sink has taken, in the order of the schema."""
    pa = _pyarrow()
    count = len(sink)
    if not count:
        return [pa.array([], field.type) for field in schema()]
    keys, values = sink.bytes_buffers
    number_types = (pa.int64(), pa.timestamp("ms", "UTC"), pa.int8())
    return [
        *(
            pa.Array.from_buffers(arrow_type, count, [None, buffer], 0)
            for arrow_type, buffer in zip(number_types, sink.number_buffers, strict=True)
        ),
        same_number(pa.int32(), partition, count),
        _bytes_array(pa.binary(), count, keys),
        _bytes_array(pa.binary(), count, values),
        _headers_array(count, *sink.header_buffers),
    ]


def same_number(arrow_type: Any, number: int, count: int) -> pa.Array:
    """A column with one number in every row; pyarrow's own `repeat` takes 40 ns for each."""
    pa = _pyarrow()
    size = arrow_type.bit_width // 8
    entries = array({4: "i", 8: "q"}[size], [number]) * count if number else bytes(size * count)
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(entries)], 0)


def _bytes_array(arrow_type: Any, count: int, buffers: BytesBuffers) -> Any:
    pa = _pyarrow()
    nulls, validity, offsets, content = buffers
    return pa.Array.from_buffers(
        arrow_type,
        count,
        [validity if nulls else None, offsets, content],
        nulls,
    )


def _headers_array(
    count: int, headers: int, offsets: Any, key_buffers: BytesBuffers, value_buffers: BytesBuffers
) -> Any:
    pa = _pyarrow()
    structs = _header_structs(headers, key_buffers, value_buffers) if headers else _no_headers()
    list_type = schema().field("headers").type
    return pa.Array.from_buffers(list_type, count, [None, offsets], 0, children=[structs])


@cache
def _no_headers() -> Any:
    return _pyarrow().array([], schema().field("headers").type.value_type)


def _header_structs(headers: int, key_buffers: BytesBuffers, value_buffers: BytesBuffers) -> Any:
    pa = _pyarrow()
    keys = _bytes_array(pa.string(), headers, key_buffers)
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = _bytes_array(pa.binary(), headers, key_buffers)
        keys = pa.array([key.decode("utf-8", "replace") for key in raw.to_pylist()], pa.string())
    values = _bytes_array(pa.binary(), headers, value_buffers)
    fields = list(schema().field("headers").type.value_type)
    return pa.StructArray.from_arrays([keys, values], fields=fields)


# Building.


def _by_partition(rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    import pyarrow.compute as pc  # noqa: PLC0415

    if "partition" not in rows.schema.names:
        yield 0, rows
        return
    partitions = rows.column("partition")
    for partition in pc.unique(partitions).to_pylist():
        if partition is None:
            raise InvalidRecord("a row without partition")
        yield partition, rows.filter(pc.equal(partitions, partition))


def encode_rows(rows: pa.RecordBatch, max_batch_bytes: int) -> Iterator[EncodedRows]:
    """The rows in even pieces of at most `max_batch_bytes`, as batches hold them; a larger record goes alone.

    They lie in memory of Arrow's own, which is reused: fresh pages cost more than all that fills them.
    """
    allocate = _pyarrow().allocate_buffer
    max_batch_bytes = min(max_batch_bytes, _even_piece(rows, max_batch_bytes))
    timestamps_ms = _timestamps(rows)
    source = _record_source(rows, timestamps_ms, memoryview(b"").cast("q"))
    start = 0
    while start < rows.num_rows:
        end, size = source.fit(start, max_batch_bytes - HEADER_SIZE)
        encoded, max_timestamp_ms = source.encode(start, end, size, allocate)
        yield EncodedRows(memoryview(encoded).cast("B"), end - start, timestamps_ms[start], max_timestamp_ms)
        start = end


def _even_piece(rows: pa.RecordBatch, max_batch_bytes: int) -> int:
    """About as many bytes as make all pieces equal: none should be a small rest."""
    size: int = sum(
        rows.column(name).nbytes for name in ("key", "value", "headers") if name in rows.schema.names
    )
    size += rows.num_rows * _RECORD_OVERHEAD_BYTES
    piece = size // (size // max_batch_bytes + 1)
    return piece + piece // 32 + HEADER_SIZE  # rather a little less in the last one than one more


def key_partitions(keys: pa.Array, partitions: int, without_key: int) -> pa.Array:
    """The partition of each key as Java's clients choose it, as int32; `without_key` for null."""
    pa = _pyarrow()
    out = new_bytearray(len(keys) * 4)
    partition_keys(_bytes_source(keys), len(keys), partitions, without_key, memoryview(out).cast("i"))
    return pa.Array.from_buffers(pa.int32(), len(keys), [None, pa.py_buffer(out)], 0)


def _encode(
    rows: pa.RecordBatch, keeps_offsets: bool, codec: Codec, level: int | None, max_bytes: int
) -> Iterator[bytearray]:
    timestamps_ms = _timestamps(rows)
    offsets = _offsets(rows) if keeps_offsets else memoryview(b"").cast("q")
    source = _record_source(rows, timestamps_ms, offsets)
    start = 0
    while start < rows.num_rows:
        end, size = source.fit(start, max_bytes - HEADER_SIZE)
        encoded, max_timestamp_ms = source.encode(start, end, size)
        yield finish_batch(
            encoded,
            codec=codec,
            level=level,
            attributes=0,
            base_offset=offsets[start] if keeps_offsets else 0,
            partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
            last_offset_delta=offsets[end - 1] - offsets[start] if keeps_offsets else end - start - 1,
            base_timestamp_ms=timestamps_ms[start],
            max_timestamp_ms=max_timestamp_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=end - start,
        )
        start = end


def _record_source(rows: pa.RecordBatch, timestamps_ms: memoryview, offsets: memoryview) -> RecordSource:
    return RecordSource(
        _bytes_source(rows.column("key")) if "key" in rows.schema.names else _only_nulls(),
        _bytes_source(rows.column("value")),
        timestamps_ms,
        offsets,
        *_header_sources(rows),
    )


def _timestamps(rows: pa.RecordBatch) -> memoryview:
    import pyarrow.compute as pc  # noqa: PLC0415

    pa = _pyarrow()
    timestamps, wanted = rows.column("timestamp"), pa.timestamp("ms", "UTC")
    if timestamps.type == wanted and not timestamps.null_count:
        return _numbers(timestamps)
    # Finer times, such as Spark's, lose what is below a millisecond.
    in_ms = pc.CastOptions(wanted, allow_time_truncate=True)
    timestamps = pc.cast(timestamps, options=in_ms).cast(pa.int64())
    return _numbers(pc.fill_null(timestamps, NO_TIMESTAMP))


def _offsets(rows: pa.RecordBatch) -> memoryview:
    import pyarrow.compute as pc  # noqa: PLC0415

    offsets = rows.column("offset").cast(_pyarrow().int64())
    if offsets.null_count or not pc.all(pc.greater(offsets[1:], offsets[:-1]), min_count=0).as_py():
        raise InvalidRecord("the offsets of a partition must grow from row to row")
    return _numbers(offsets)


def _header_sources(rows: pa.RecordBatch) -> tuple[memoryview, BytesSource, BytesSource]:
    """Where each record's headers begin, their keys, and their values."""
    import pyarrow.compute as pc  # noqa: PLC0415

    pa = _pyarrow()
    if "headers" not in rows.schema.names:
        return memoryview(bytes((rows.num_rows + 1) * 8)).cast("q"), _only_nulls(), _only_nulls()
    headers = rows.column("headers")
    lengths = pc.fill_null(pc.list_value_length(headers).cast(pa.int64()), 0)
    ends = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), lengths]))
    keys, values = headers.flatten().flatten()
    if keys.null_count:
        raise InvalidRecord("a header without key")
    return _numbers(ends), _bytes_source(keys), _bytes_source(values)


def _only_nulls() -> BytesSource:
    return BytesSource(memoryview(b""), memoryview(b"").cast("q"), memoryview(b""), 0)


def _bytes_source(column: Any) -> BytesSource:
    """A column of bytes or text as buffers with 64-bit offsets, checked because the kernels trust them."""
    pa = _pyarrow()
    column = column.cast(pa.large_binary())
    column.validate(full=True)
    validity, offsets, content = column.buffers()
    return BytesSource(
        memoryview(validity or b"").cast("B"),
        memoryview(offsets or bytes(8)).cast("B").cast("q"),
        memoryview(content or b"").cast("B"),
        column.offset,
    )


def _numbers(column: Any) -> memoryview:
    """The entries of a column of 8-byte numbers without nulls."""
    entries = memoryview(column.buffers()[1] or b"").cast("B").cast("q")
    return entries[column.offset : column.offset + len(column)]


def _pyarrow() -> Any:
    """Pyarrow, which only the users of this file need."""
    try:
        import pyarrow  # noqa: PLC0415
    except ImportError:
        raise OdradekError("Arrow needs pyarrow: pip install 'odradek[arrow]'") from None
    return pyarrow
