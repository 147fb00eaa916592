"""Spark's types as text."""

from __future__ import annotations

import pytest

from odradek.spark.pipeline.definition.types import Field, WrongType, ddl, fields_of


def test_a_text_and_a_mapping_make_the_same_fields():
    expected = (
        Field("id", "bigint", nullable=False),
        Field("price", "decimal(10,2)"),
        Field("lines", "array<struct<sku: string, n: int NOT NULL>>"),
        Field("tags", "map<string,array<double>>"),
    )
    types = "array<struct<sku: string, n: int not null>>"
    text = f"id long NOT NULL, `price` decimal(10, 2), lines {types}, tags map<string, array<double>>"
    mapping = {"id": "bigint not null", "price": "decimal(10,2)", "lines": types}
    assert fields_of(text) == expected
    assert fields_of(mapping | {"tags": "map<string,array<double>>"}) == expected


def test_fields_are_written_as_they_are_read():
    fields = fields_of("a int, b struct<c: string, d: array<date>> not null")
    assert fields_of(ddl(fields)) == fields


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a bigit", "unknown type 'bigit'"),
        ("a int b int", "fields are separated by commas"),
        ("a array<int", "ends too early"),
        ("a decimal(50,2)", "the precision is 1 to 38"),
        ("a int, A string", "is there twice"),
        ("", "at least one field"),
        ("a int; b int", "cannot read"),
        ("a " + "array<" * 100, "nested too deeply"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_reason(text, sentence):
    with pytest.raises(WrongType, match=sentence.replace("(", r"\(")):
        fields_of(text)
