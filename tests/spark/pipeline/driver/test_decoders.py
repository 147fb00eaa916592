"""Avro, Protobuf and Arrow values as rows; what does not fit keeps its bytes and has a reason."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass

from odradek.spark.pipeline.definition.model import Schema
from odradek.spark.pipeline.definition.schema_files import avro_schema, message_descriptor, protobuf_schema
from odradek.spark.pipeline.definition.types import Field, WrongType
from odradek.spark.pipeline.driver.decoders import decoder

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


def protobuf_files() -> bytes:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
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
