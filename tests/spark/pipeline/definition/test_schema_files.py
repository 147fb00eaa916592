"""Avro schemas as Spark's types."""

from __future__ import annotations

import json

import pytest

from odradek.spark.pipeline.definition.schema_files import avro_schema
from odradek.spark.pipeline.definition.types import Field, WrongType


def avro(*fields: tuple[str, object]) -> str:
    rows = [{"name": name, "type": type_} for name, type_ in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": rows})


def test_avro_types_have_their_spark_types():
    line = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    schema = avro_schema(
        avro(
            ("id", "long"),
            ("note", ["null", "string"]),
            ("at", {"type": "long", "logicalType": "timestamp-millis"}),
            ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
            ("lines", {"type": "array", "items": line}),
            ("first", ["null", "Line"]),
            ("tags", {"type": "map", "values": "int"}),
            ("kind", {"type": "enum", "name": "Kind", "symbols": ["A"]}),
            ("tax", {"type": "fixed", "name": "Tax", "size": 4, "logicalType": "decimal", "precision": 5}),
            ("duty", "Tax"),
            ("token", {"type": "fixed", "name": "Token", "size": 16, "logicalType": "uuid"}),
            ("day", {"type": "string", "logicalType": "date"}),
        ),
        skip_bytes=5,
    )
    assert schema.fields == (
        Field("id", "bigint", nullable=False),
        Field("note", "string"),
        Field("at", "timestamp", nullable=False),
        Field("price", "decimal(9,2)", nullable=False),
        Field("lines", "array<struct<sku: string>>", nullable=False),
        Field("first", "struct<sku: string>"),
        Field("tags", "map<string,int>", nullable=False),
        Field("kind", "string", nullable=False),
        Field("tax", "decimal(5,0)", nullable=False),
        Field("duty", "decimal(5,0)", nullable=False),
        Field("token", "string", nullable=False),
        Field("day", "string", nullable=False),
    )
    assert schema.skip_bytes == 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ('"string"', "must be one record"),
        (avro(("a", ["int", "string"])), "a union of 2 types is not supported|union of 2 types"),
        (avro(("a", "Nothing")), "unknown Avro type 'Nothing'"),
        (avro(("a", ["null", "Order"])), "contains itself"),
    ],
)
def test_what_spark_cannot_hold_is_refused(text, sentence):
    with pytest.raises(WrongType, match=sentence):
        avro_schema(text, 0)
