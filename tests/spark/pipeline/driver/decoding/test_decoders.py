"""Avro, Protobuf and Arrow values as rows; what does not fit keeps its bytes and has a reason."""

from __future__ import annotations

import io
import json
import uuid
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from odradek.spark.pipeline.definition.model import Schema
from odradek.spark.pipeline.definition.schema_files import avro_schema, message_descriptor, protobuf_schema
from odradek.spark.pipeline.definition.types import Field, WrongType
from odradek.spark.pipeline.driver.decoding.decoders import decoder

OWN = [
    ("_key", pa.binary()),
    ("_topic", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
    ("_timestamp", pa.timestamp("us", "UTC")),
    ("_error", pa.string()),
    ("_value", pa.binary()),
]


def decoded(
    schema: Schema, values: list[bytes | None], *columns: tuple[str, pa.DataType]
) -> list[dict[str, Any]]:
    rows = [
        {
            "value": value,
            "key": b"k",
            "topic": "t",
            "partition": 1,
            "offset": offset,
            "timestamp": datetime.now(UTC),
        }
        for offset, value in enumerate(values)
    ]
    batches = decoder(schema, pa.schema([*columns, *OWN]))([pa.RecordBatch.from_pylist(rows)])
    return [row for batch in batches for row in batch.to_pylist()]


def test_avro():
    text = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    schema = avro_schema(json.dumps(text), skip_bytes=5)
    stream = io.BytesIO()
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(text), {"id": 7, "at": at})
    value = b"\0\0\0\0\1" + stream.getvalue()

    columns = (("id", pa.int64()), ("at", pa.timestamp("us", "UTC")))
    good, torn, tombstone, longer = decoded(schema, [value, value[:6], None, value + b"x"], *columns)
    assert (good["id"], good["at"], good["_error"], good["_offset"], good["_key"]) == (7, at, None, 0, b"k")
    assert torn["_error"]
    assert (torn["_value"], torn["_offset"], torn["id"]) == (value[:6], 1, None)
    assert (tombstone["_error"], tombstone["id"]) == (None, None)
    assert longer["_error"] == "1 bytes are left after the Avro record"


UTC_US, LOCAL_US = pa.timestamp("us", "UTC"), pa.timestamp("us")
AT = datetime(2026, 1, 31, 12, 30, 15, 123456)
DAY = AT.date()
TOKEN = uuid.UUID(int=2**127 + 5)
LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


AVRO_VALUES = [
    # Avro type, Arrow type of the column, what is written, what is read (the same unless given)
    ("boolean", pa.bool_(), True),
    ("int", pa.int32(), -5),
    ("long", pa.int64(), 2**62),
    ("float", pa.float32(), 0.5),
    ("double", pa.float64(), 0.1),
    ("bytes", pa.binary(), b"\0x"),
    ("string", pa.string(), "ä"),
    ({"type": "fixed", "name": "F", "size": 3}, pa.binary(), b"abc"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.string(), "B"),
    ({"type": "array", "items": LINE}, pa.list_(pa.struct([("sku", pa.string())])), [{"sku": "a"}]),
    (LINE, pa.struct([("sku", pa.string())]), {"sku": "a"}),
    ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), {"a": 1}, [("a", 1)]),
    (["null", "string"], pa.string(), None),
    (["null", "string"], pa.string(), "there"),
    (logical("int", "date"), pa.date32(), DAY),
    (logical("int", "time-millis"), pa.int32(), time(0, 0, 1, 5000), 1005),
    (logical("long", "time-micros"), pa.int64(), time(0, 0, 1, 5), 1_000_005),
    (["null", logical("long", "time-micros")], pa.int64(), time(0, 0, 1, 5), 1_000_005),
    (logical("long", "timestamp-micros"), UTC_US, AT.replace(tzinfo=UTC)),
    (logical("long", "timestamp-nanos"), UTC_US, 1_700_000_000_123_456_789, 1_700_000_000_123_456),
    (logical("long", "local-timestamp-micros"), LOCAL_US, AT),
    (logical("string", "uuid"), pa.string(), TOKEN, str(TOKEN)),
    (logical("fixed", "uuid", name="U", size=16), pa.string(), TOKEN.bytes, str(TOKEN)),
    (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2), Decimal("-1234567.89")),
    (logical("string", "date"), pa.string(), "no date"),
]


@pytest.mark.parametrize(
    ("avro_type", "arrow_type", "written", "read"), [(*row, row[2])[:4] for row in AVRO_VALUES]
)
def test_a_value_of_each_avro_type_and_every_cut_of_it(avro_type, arrow_type, written, read):
    text = {"type": "record", "name": "R", "fields": [{"name": "v", "type": avro_type}]}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(text))), {"v": written})
    value = stream.getvalue()
    cuts = [value[:length] for length in range(len(value))]

    schema = avro_schema(json.dumps(text), skip_bytes=0)
    good, *torn = decoded(schema, [value, *cuts], ("v", arrow_type))
    if avro_type == logical("long", "timestamp-nanos"):
        read = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123456)
    assert (good["v"], good["_error"]) == (read, None)
    assert all(row["_error"] and row["v"] is None for row in torn)
    assert [row["_value"] for row in torn] == cuts


def test_avro_times_that_no_calendar_has_are_bad_records():
    text = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "v", "type": logical("long", "timestamp-millis")}],
    }
    stream = io.BytesIO()
    plain = {"type": "record", "name": "R", "fields": [{"name": "v", "type": "long"}]}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(plain), {"v": 7 * 10**16})
    (row,) = decoded(avro_schema(json.dumps(text), skip_bytes=0), [stream.getvalue()], ("v", UTC_US))
    assert row["_error"]


KIND = descriptor_pb2.FieldDescriptorProto
PROTOBUF_VALUES: list[tuple[str, tuple[Any, ...]]] = [
    # name, and: type, column, value, name of the type
    ("small", (KIND.TYPE_INT32, pa.int32(), -7, None)),
    ("unsigned", (KIND.TYPE_UINT32, pa.int64(), 2**32 - 1, None)),
    ("huge", (KIND.TYPE_UINT64, pa.decimal128(20, 0), 2**64 - 1, None)),
    ("ratio", (KIND.TYPE_FLOAT, pa.float32(), 0.5, None)),
    ("exact", (KIND.TYPE_DOUBLE, pa.float64(), 0.1, None)),
    ("is_new", (KIND.TYPE_BOOL, pa.bool_(), True, None)),
    ("content", (KIND.TYPE_BYTES, pa.binary(), b"\0x", None)),
    ("state", (KIND.TYPE_ENUM, pa.string(), "PAID", ".shop.Order.Note.State")),
]


def protobuf_files() -> bytes:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    note = order.nested_type.add(name="Note")
    for number, (name, of) in enumerate(PROTOBUF_VALUES, start=1):
        note.field.add(name=name, number=number, type=of[0], label=kind.LABEL_OPTIONAL, type_name=of[3])
    state = note.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="PAID", number=1)
    entry = note.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kind.TYPE_INT32, label=kind.LABEL_OPTIONAL)
    note.field.add(
        name="tags",
        number=len(PROTOBUF_VALUES) + 1,
        type=kind.TYPE_MESSAGE,
        type_name=".shop.Order.Note.TagsEntry",
        label=kind.LABEL_REPEATED,
    )
    order.field.add(name="id", number=1, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    order.field.add(
        name="lines", number=2, type=kind.TYPE_MESSAGE, type_name=".shop.Line", label=kind.LABEL_REPEATED
    )
    order.field.add(
        name="at",
        number=3,
        type=kind.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=kind.LABEL_OPTIONAL,
    )
    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    return descriptor_pb2.FileDescriptorSet(file=[times, file]).SerializeToString()


def test_protobuf():
    files = protobuf_files()
    schema = protobuf_schema(files, "shop.Order", skip_bytes=0)
    assert schema.fields == (
        Field("id", "bigint"),
        Field("lines", "array<struct<sku: string>>"),
        Field("at", "timestamp"),
    )
    message = GetMessageClass(message_descriptor(files, "shop.Order"))(
        id=7, lines=[{"sku": "a"}, {"sku": "b"}]
    )
    message.at.FromSeconds(1_700_000_000)

    columns = (
        ("id", pa.int64()),
        ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ("at", pa.timestamp("us", "UTC")),
    )
    good, bad = decoded(schema, [message.SerializeToString(), b"\xff\xff"], *columns)
    assert (good["id"], good["lines"], good["_error"]) == (7, [{"sku": "a"}, {"sku": "b"}], None)
    assert good["at"] == datetime.fromtimestamp(1_700_000_000, UTC)
    assert bad["_error"]
    with pytest.raises(WrongType, match=r"there is no message 'shop.Ordr'; .* shop.Order"):
        protobuf_schema(files, "shop.Ordr", skip_bytes=0)


def test_a_nested_message_with_a_value_of_each_protobuf_type_and_every_cut_of_it():
    files = protobuf_files()
    schema = protobuf_schema(files, "shop.Order.Note", skip_bytes=0)
    values = {name: of[2] for name, of in PROTOBUF_VALUES}
    message = GetMessageClass(message_descriptor(files, schema.message))(**values, tags={"a": 1})
    value = message.SerializeToString()

    columns = [(name, of[1]) for name, of in PROTOBUF_VALUES] + [("tags", pa.map_(pa.string(), pa.int32()))]
    rows = decoded(schema, [value, *(value[:length] for length in range(len(value)))], *columns)
    assert {name: rows[0][name] for name in values} == values
    assert (rows[0]["tags"], rows[0]["_error"]) == ([("a", 1)], None)
    assert len(rows) == len(value) + 1
    assert [row["_offset"] for row in rows] == list(range(len(rows)))


@pytest.mark.parametrize("seconds", [7 * 10**16, -(2**62), 253_402_300_800])
def test_protobuf_times_out_of_range_are_bad_records(seconds):
    files = protobuf_files()
    message = GetMessageClass(message_descriptor(files, "shop.Order"))(id=7)
    message.at.seconds = seconds
    columns = (
        ("id", pa.int64()),
        ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ("at", UTC_US),
    )
    (row,) = decoded(protobuf_schema(files, "shop.Order", 0), [message.SerializeToString()], *columns)
    assert row["_error"] == f"the Timestamp of {seconds} s and 0 ns is out of range"
    assert row["id"] is None


def test_arrow_streams_hold_several_rows():
    table = pa.table({"id": [1, 2], "other": ["a", "b"]})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    schema = Schema(format="arrow", fields=(Field("id", "bigint", nullable=False),))

    rows = decoded(schema, [stream.getvalue(), b"no stream"], ("id", pa.int64()))
    assert [(row["id"], row["_offset"]) for row in rows[:2]] == [(1, 0), (2, 0)]
    assert rows[2]["_error"].startswith("not an Arrow stream")
    lacking = Schema(format="arrow", fields=(Field("name", "string"),))
    (row,) = decoded(lacking, [stream.getvalue()], ("name", pa.string()))
    assert row["_error"] == "the Arrow table lacks the column name"


def test_a_value_that_does_not_fit_its_column_is_bad_and_the_others_are_not():
    text = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}
    schema = avro_schema(json.dumps(text), skip_bytes=0)
    values = []
    for number in (1, 2**40, 3):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(text), {"n": number})
        values.append(stream.getvalue())
    rows = decoded(schema, values, ("n", pa.int32()))
    assert [row["n"] for row in rows] == [1, None, 3]
    assert rows[1]["_error"]
    assert rows[1]["_value"] == values[1]


def arrow_stream(**columns: Any) -> bytes:
    table = pa.table(columns)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_a_record_of_several_rows_is_good_or_bad_as_a_whole():
    schema = Schema(format="arrow", fields=(Field("n", "int"),))
    values = [
        arrow_stream(n=[1, 2]),
        arrow_stream(n=["a", "b", "c"]),  # a wrong type
        arrow_stream(n=[3, 2**40, 4]),  # a row that does not fit
        arrow_stream(n=[5]),
        arrow_stream(n=pa.array([], pa.string())),
        arrow_stream(n=pa.array([], pa.int32())),
    ]
    rows = decoded(schema, values, ("n", pa.int32()))
    assert [(row["_offset"], row["n"], bool(row["_error"])) for row in rows] == [
        (0, 1, False),
        (0, 2, False),
        (1, None, True),
        (2, None, True),
        (3, 5, False),
        (4, None, True),
    ]
    letters = [row for row in rows if row["_error"]]
    assert [row["_value"] for row in letters] == [values[1], values[2], values[4]]
    assert letters[0]["_error"] == "the Arrow column n is string, and the schema has int32"


DAYS = pa.array([DAY])


@pytest.mark.parametrize(
    ("column", "wanted", "read"),
    [
        (pa.array([5], pa.uint8()), pa.int64(), 5),
        (pa.array([5]), pa.float64(), 5.0),
        (pa.array([None], pa.null()), pa.int64(), None),
        (pa.array(["a"]).dictionary_encode(), pa.string(), "a"),
        (pa.array(["a"], pa.large_string()), pa.string(), "a"),
        (pa.array([b"a"], pa.binary(1)), pa.binary(), b"a"),
        (pa.array(["a"]), pa.binary(), b"a"),
        (pa.array([b"a"]), pa.string(), "a"),
        (pa.array([AT], pa.timestamp("us")), UTC_US, AT.replace(tzinfo=UTC)),
        (pa.array([Decimal("1.50")]), pa.decimal128(9, 2), Decimal("1.50")),
        (DAYS, pa.date32(), DAY),
        (pa.array([[1]], pa.large_list(pa.int8())), pa.list_(pa.int64()), [1]),
        (pa.array([{"a": 1, "b": 2}]), pa.struct([("a", pa.int64())]), {"a": 1}),
        (
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
            pa.map_(pa.string(), pa.int64()),
            [("k", 1)],
        ),
    ],
)
def test_an_arrow_column_of_a_type_that_fits_is_read(column, wanted, read):
    schema = Schema(format="arrow", fields=(Field("v", "any"),))
    (row,) = decoded(schema, [arrow_stream(v=column)], ("v", wanted))
    assert (row["v"], row["_error"]) == (read, None)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([5]), UTC_US),  # would be a time
        (pa.array([1.0]), pa.int64()),  # a whole number by chance
        (pa.array([True]), pa.int64()),
        (pa.array([5]), pa.string()),
        (pa.array(["5"]), pa.int64()),
        (DAYS, UTC_US),
        (pa.array([[5]]), pa.int64()),
        (pa.array([["5"]]), pa.list_(pa.int64())),
        (pa.array([{"a": "5"}]), pa.struct([("a", pa.int64())])),
        (pa.array([[("k", "5")]], pa.map_(pa.string(), pa.string())), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_an_arrow_column_of_another_type_is_a_bad_record(column, wanted):
    schema = Schema(format="arrow", fields=(Field("v", "any"),))
    (row,) = decoded(schema, [arrow_stream(v=column)], ("v", wanted))
    assert (row["v"], row["_error"]) == (
        None,
        f"the Arrow column v is {column.type}, and the schema has {wanted}",
    )
