"""Schemas from samples of JSON values."""

from __future__ import annotations

import json

import pytest

from odradek.spark.pipeline.definition.infer import infer_fields
from odradek.spark.pipeline.definition.new_file import with_schema, yaml_text
from odradek.spark.pipeline.definition.types import Field, WrongType, fields_of
from odradek.spark.pipeline.definition.yaml_file import parse


def inferred(*values) -> dict[str, str]:
    return {field.name: field.type for field in infer_fields(json.dumps(one).encode() for one in values)}


def test_each_kind_of_value_has_its_type():
    assert inferred(
        {
            "n": 1,
            "x": 1.5,
            "yes": True,
            "at": "2026-01-31T12:00:00Z",
            "day": "2026-01-31",
            "s": "a",
            "z": None,
        }
    ) == {
        "n": "bigint",
        "x": "double",
        "yes": "boolean",
        "at": "timestamp",
        "day": "date",
        "s": "string",
        "z": "string",
    }


def test_types_are_widened_until_all_values_fit():
    assert inferred({"a": 1}, {"a": 2.5, "b": None}, {"b": [1]}, {"b": [None, 2**70]}) == {
        "a": "double",
        "b": "array<decimal(38,0)>",
    }
    assert inferred({"a": {"b": 1}}, {"a": {"c": "2026-01-31"}}, {"a": {"c": "no date"}}) == {
        "a": "struct<b: bigint, c: string>"
    }
    assert inferred({"a": 1}, {"a": "one"}, {"a": True}) == {"a": "string"}


def test_bad_values_are_left_out_and_none_is_an_error():
    assert infer_fields([b"{", None, b"[1]", b'{"a": 1}', b"\xff"]) == (Field("a", "bigint"),)
    with pytest.raises(WrongType, match="no value of the sample is a JSON object"):
        infer_fields([b"1", b"nothing"])


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (
            b'{"id": 1, "at": 2, "Id": 3}',
            "the fields id and Id differ in case only, and Spark takes them for one",
        ),
        (b'{"_offset": 1}', "the field _offset has the name of a column of every record: write the schema"),
        (b'{"": 1}', "'' cannot be the name of a field: write the schema"),
        (b'{"a": {"b`c": 1}}', "write the schema"),
    ],
)
def test_fields_that_a_file_cannot_have_are_not_inferred(value, error):
    with pytest.raises(WrongType, match=error):
        infer_fields([b'{"x": 1}', value])


def test_inferred_fields_are_frozen_into_a_file_that_can_be_read():
    fields = infer_fields([b'{"a b": {"c": [1]}, "on": 1}'])
    text = yaml_text("archive", "archive.yaml", "orders", "localhost:9092", fields)
    assert parse(text, "archive.yaml", {}).sources[0].schema.fields == fields_of(fields)

    bare = text.replace(text[text.index("    schema:") : text.index("    bad_records")], "")
    line = bare.split("\n").index("    format: json") + 1
    assert with_schema(bare, line, fields) == text
