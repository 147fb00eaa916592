"""Why a JSON value does not fit a schema."""

from __future__ import annotations

import pytest

from odradek.spark.pipeline.driver.decoding.bad_records import reason

SCHEMA = {
    "fields": [
        {"name": "id", "type": "long", "nullable": False},
        {"name": "price", "type": "double", "nullable": True},
        {"name": "at", "type": "timestamp", "nullable": True},
        {
            "name": "lines",
            "nullable": True,
            "type": {
                "type": "array",
                "elementType": {
                    "type": "struct",
                    "fields": [{"name": "sku", "type": "integer", "nullable": True}],
                },
            },
        },
    ]
}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (b"{", "not JSON: Expecting property name"),
        (b"\xff", "not a text in UTF-8"),
        (b"[1]", "the value: expected an object, found [1]"),
        (b"{}", "the field id is missing or null"),
        (b'{"id": 1.5}', "id: expected a whole number (long), found 1.5"),
        (b'{"id": 1, "price": "ten"}', 'price: expected a number (double), found "ten"'),
        (b'{"id": 1, "at": "noon"}', 'at: expected a timestamp, found "noon"'),
        (
            b'{"id": 1, "lines": [{"sku": 1}, {"sku": "a"}]}',
            "lines[1].sku: expected a whole number (integer)",
        ),
        (b'{"id": 1}', "the value does not fit the schema"),
    ],
)
def test_the_first_misfit_is_named(value, sentence):
    assert reason(value, SCHEMA).startswith(sentence)


@pytest.mark.parametrize(("kind", "bits"), [("byte", 7), ("short", 15), ("integer", 31), ("long", 63)])
def test_the_ends_of_each_whole_number_fit_and_no_more(kind, bits):
    schema = {"fields": [{"name": "n", "type": kind, "nullable": True}]}

    def sentence(number: int) -> str:
        return reason(b'{"n": %d}' % number, schema)

    fits = "the value does not fit the schema"  # for some other reason
    assert sentence(2**bits - 1) == sentence(-(2**bits)) == fits
    assert sentence(2**bits) == f"n: expected a whole number ({kind}), found {2**bits}"
    assert sentence(-(2**bits) - 1) == f"n: expected a whole number ({kind}), found {-(2**bits) - 1}"
