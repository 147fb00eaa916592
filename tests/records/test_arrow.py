"""Batches to and from Arrow: nothing is lost, and nothing is made per record."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records import arrow
from odradek.records.arrow import build_batches, encode_rows, read_record_batches, read_table, schema
from odradek.records.batch import TimestampType, read_header, stamp
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.errors import CorruptBatch, DecompressedTooLarge, InvalidRecord, TruncatedBatch
from odradek.records.record import Record, read_records
from records.conftest import COMPILED, INTERPRETED, Kernels
from records.samples import FEW, LIMIT, a_batch, batch_of, patched, record_lists, some_records

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KERNEL_NAMES = ("BytesSource", "RecordSource", "RecordsSink")


@pytest.fixture(params=[COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def _twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KERNEL_NAMES:
        monkeypatch.setattr(arrow, name, getattr(request.param, name))


def records_of(table: pa.Table) -> list[Record]:
    return [
        Record(
            row["offset"],
            (row["timestamp"] - EPOCH) // timedelta(milliseconds=1),
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in table.to_pylist()
    ]


@pytest.mark.usefixtures("_twin")
def test_a_log_becomes_a_table_with_every_field():
    log = a_batch(4) + a_batch(30, Codec.LZ4) + a_batch(1, Codec.GZIP)

    table = read_table(log, max_bytes=LIMIT, partition=7)

    table.validate(full=True)
    assert table.schema == schema()
    assert records_of(table) == some_records(4) + some_records(30) + some_records(1)
    assert set(table["partition"].to_pylist()) == {7}
    assert set(table["timestamp_type"].to_pylist()) == {TimestampType.CREATE_TIME}


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(records=record_lists(gaps=True))
def test_any_records_survive_the_way_to_arrow_and_back(codec, records):
    table = read_table(build_batch(records), max_bytes=LIMIT)
    assert records_of(table) == records

    batches = [
        batch for _, batch in build_batches(table, codec=codec, keeps_offsets=True, max_batch_bytes=300)
    ]

    assert [record for batch in batches for record in read_records(batch, max_bytes=LIMIT)] == records


@FEW
@given(records=record_lists(), limit=st.integers(62, 2000))
def test_both_twins_build_the_same_batches(records, limit):
    table = read_table(build_batch(records), max_bytes=LIMIT)

    def built(kernel: Kernels) -> list[tuple[int, bytearray]]:
        with pytest.MonkeyPatch.context() as patch:
            for name in KERNEL_NAMES:
                patch.setattr(arrow, name, getattr(kernel, name))
            return list(build_batches(table, max_batch_bytes=limit))

    assert built(COMPILED) == built(INTERPRETED)


@pytest.mark.usefixtures("_twin")
def test_batches_keep_below_their_size_unless_one_record_is_larger():
    values = [b"x" * 100] * 50 + [b"y" * 5000] + [b"z" * 100] * 3
    table = pa.table({"value": values, "timestamp": pa.array([0] * len(values), pa.timestamp("ms", "UTC"))})

    batches = [batch for _, batch in build_batches(table, max_batch_bytes=1000)]

    sizes = [len(batch) for batch in batches]
    assert [size for size in sizes if size > 1000] == [max(sizes)]
    assert all(read_header(batch).base_offset == 0 for batch in batches)
    assert [r.value for batch in batches for r in read_records(batch, max_bytes=LIMIT)] == values


@pytest.mark.usefixtures("_twin")
def test_rows_are_encoded_in_even_pieces_without_a_small_rest():
    times = pa.array([0] * 1000, pa.timestamp("ms", "UTC"))
    rows = pa.record_batch({"value": pa.array([b"x" * 100] * 1000), "timestamp": times})

    pieces = list(encode_rows(rows, 50_000))

    assert sum(piece.record_count for piece in pieces) == 1000
    sizes = [len(piece.encoded) for piece in pieces]
    assert len(sizes) == 3
    assert max(sizes) <= 50_000
    assert min(sizes) > 30_000


@pytest.mark.usefixtures("_twin")
def test_only_value_and_timestamp_are_needed_and_text_will_do():
    table = pa.table(
        {
            "value": pa.array(["text", None, "é"], pa.string()),
            "timestamp": pa.array([1, None, 3], pa.timestamp("ms", "UTC")),
        }
    )
    ((partition, batch),) = build_batches(table)

    assert partition == 0
    assert read_records(batch, max_bytes=LIMIT) == [
        Record(0, 1, None, b"text"),
        Record(1, -1, None, None),
        Record(2, 3, None, "é".encode()),
    ]


@pytest.mark.usefixtures("_twin")
def test_slices_chunks_and_null_header_lists_are_read_right():
    header = [{"key": "h", "value": b"1"}]
    headers = pa.array([header, None, [], header * 2, header], schema().field("headers").type)
    table = pa.table(
        {
            "key": pa.array([b"a", None, b"c", b"d", b"e"], pa.large_binary()),
            "value": pa.array([None, b"2", b"3", b"4", b"5"]),
            "timestamp": pa.array([1001, 2002, 3999, 4000, 5000], pa.timestamp("us")),
            "headers": headers,
        }
    )
    table = pa.concat_tables([table.slice(1, 3), table.slice(4)])

    records = [r for _, batch in build_batches(table) for r in read_records(batch, max_bytes=LIMIT)]

    assert [(r.key, r.value) for r in records] == [(None, b"2"), (b"c", b"3"), (b"d", b"4"), (b"e", b"5")]
    assert [len(r.headers) for r in records] == [0, 0, 2, 1]
    assert [r.timestamp_ms for r in records] == [2, 3, 4, 5]
    for _, batch in build_batches(table.slice(1, 2)):
        assert read_records(batch, max_bytes=LIMIT) == [
            Record(i, r.timestamp_ms, r.key, r.value, r.headers) for i, r in enumerate(records[1:3])
        ]


@pytest.mark.usefixtures("_twin")
def test_a_slice_of_one_chunk_begins_where_it_says():
    times = pa.array(range(5), pa.timestamp("ms", "UTC"))
    values = pa.array([b"0", b"1", None, b"3", b"4"], pa.large_binary())

    ((_, batch),) = build_batches(pa.table({"value": values, "timestamp": times}).slice(1, 3))

    assert [(r.timestamp_ms, r.value) for r in read_records(batch, max_bytes=LIMIT)] == [
        (1, b"1"),
        (2, None),
        (3, b"3"),
    ]


def test_rows_are_dealt_to_their_partitions_in_order():
    table = pa.table(
        {
            "value": pa.array([b"0", b"1", b"2", b"3"]),
            "timestamp": pa.array([0, 0, 0, 0], pa.timestamp("ms", "UTC")),
            "partition": pa.array([5, 3, 5, 3], pa.int32()),
        }
    )

    built = {partition: read_records(batch, max_bytes=LIMIT) for partition, batch in build_batches(table)}

    assert {partition: [r.value for r in records] for partition, records in built.items()} == {
        5: [b"0", b"2"],
        3: [b"1", b"3"],
    }


def table_with(**columns: Any) -> pa.Table:
    times = pa.array([0, 0], pa.timestamp("ms", "UTC"))
    return pa.table({"value": pa.array([b"1", b"2"]), "timestamp": times, **columns})


@pytest.mark.parametrize(
    "table",
    [
        table_with(partition=pa.array([1, None], pa.int32())),
        table_with(headers=pa.array([[{"key": None, "value": b"x"}], []])),
        table_with(offset=pa.array([5, 5])),
        table_with(offset=pa.array([5, None])),
    ],
    ids=["no partition", "no header key", "offsets stand still", "offset null"],
)
def test_a_table_that_cannot_be_records_is_refused(table):
    with pytest.raises(InvalidRecord):
        list(build_batches(table, keeps_offsets="offset" in table.schema.names))


@pytest.mark.usefixtures("_twin")
def test_log_append_time_is_the_timestamp_of_every_row():
    batch = build_batch(some_records(), timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=123)

    table = read_table(a_batch(1) + batch, max_bytes=LIMIT)

    assert table["timestamp_type"].to_pylist() == [0, 1, 1, 1]
    assert [r.timestamp_ms for r in records_of(table)][1:] == [123, 123, 123]


def test_markers_and_emptied_batches_have_no_rows():
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    control = build_end_transaction_marker(marker, producer_id=1, producer_epoch=0, timestamp_ms=0)

    assert read_table(control + build_batch([]) + a_batch(2), max_bytes=LIMIT).num_rows == 2
    assert read_table(control, max_bytes=LIMIT).schema == schema()
    assert read_table(b"", max_bytes=LIMIT).num_rows == 0


def test_large_logs_come_in_chunks():
    log = bytearray()
    for number in range(20):
        batch = a_batch(10)
        stamp(batch, 0, number * 10, 0)
        log += batch

    chunks = list(read_record_batches(log, max_bytes=LIMIT, chunk_bytes=3 * len(batch)))

    assert [chunk.num_rows for chunk in chunks] == [30] * 6 + [20]
    assert pa.Table.from_batches(chunks)["offset"].to_pylist() == list(range(200))


@pytest.mark.usefixtures("_twin")
def test_a_header_key_that_is_not_utf8_gets_replacement_characters():
    raw = batch_of(b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01")

    table = read_table(raw, max_bytes=LIMIT)

    table.validate(full=True)
    assert table["headers"].to_pylist() == [[{"key": "\ufffd", "value": None}]]


def test_damage_is_a_typed_error_and_no_partial_table():
    good = a_batch()
    with pytest.raises(TruncatedBatch):
        read_table(good + good[:-1], max_bytes=LIMIT)
    flipped = bytearray(good)
    flipped[-1] ^= 1
    with pytest.raises(CorruptBatch) as caught:
        read_table(good + flipped, max_bytes=LIMIT)
    assert caught.value.position == len(good)
    with pytest.raises(InvalidRecord):
        read_table(patched(good, 57, ">i", 2), max_bytes=LIMIT)
    with pytest.raises(DecompressedTooLarge):
        read_table(a_batch(50, Codec.ZSTD), max_bytes=100)


def test_without_pyarrow_the_extra_is_named():
    program = """
import sys
sys.modules["pyarrow"] = None
from odradek.common.errors import OdradekError
from odradek.records.arrow import read_table
try:
    read_table(b"", max_bytes=1)
except OdradekError as error:
    print(error)
"""
    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "odradek[arrow]" in reported.stdout
