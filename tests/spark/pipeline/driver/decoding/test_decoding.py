"""Values as columns in Spark: which records fit, which are dead letters, and which stop a query."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest

from odradek.spark.pipeline.definition.declare import topic
from odradek.spark.pipeline.driver.decoding.decoding import BAD_RECORD, dead_letters, decoded

COLUMNS = (
    "value binary, key binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
GOOD = {
    b'{"id": 1}': 1,
    b' {"id": 2, "more": {"a": [{}, "}"]}} \r\n\t': 2,
    b'{"id": 3, "name": "}"}': 3,
    b"{'id': 4, 'name': NaN}": 4,
    '{"id": 5, "name": "Käse"}'.encode(): 5,
    b'{"name": null}': None,
}
BAD = [
    b'{"id": 1} xyz',
    b'{"id": 1}{"id": 2}',
    b'{"id": 1},{"id": 2}',
    b'{"id": 1},"id": 2',
    b'{"id": 1}]',
    b'{"id": 1}] [{"id": 2}',
    b'{"id": 1, "name": "a"]',
    b'{"id": 1}}',
    b'[{"id": 1}]',
    b'{"id": "one"}',
    b'{"id": 1',
    b'{"id": 1, "name": "K\xe4se"}',
    b"null",
    b"1",
    b"",
]
"""Spark by itself takes the first object of most of these."""


def raw(spark: Any, directory: Any, values: list[bytes]) -> Any:
    rows = [(value, b"k", "t", 0, offset, datetime.now(UTC), []) for offset, value in enumerate(values)]
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.parquet(str(directory / "records"))
    return spark.read.parquet(str(directory / "records"))


def test_json_with_anything_but_one_object_is_a_dead_letter(spark, tmp_path):
    records = raw(spark, tmp_path, [*GOOD, *BAD])
    source = topic("orders", format="json", schema="id bigint, name string", bad_records="drop")
    assert [row.id for row in decoded(records, source).collect()] == list(GOOD.values())
    letters = dead_letters(records, source).collect()
    assert [bytes(row.value) for row in letters] == BAD
    reasons = [
        next(bytes(one.value).decode() for one in row.headers if "error" in one.key) for row in letters
    ]
    assert reasons[0] == "not JSON: Extra data: line 1 column 11 (char 10)"
    assert reasons[BAD.index(b'{"id": 1, "name": "K\xe4se"}')].startswith("not a text in UTF-8")


def test_a_condition_on_a_field_does_not_pass_over_a_bad_record(spark, tmp_path):
    text = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    (tmp_path / "order.avsc").write_text(text)
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(text)), {"id": 7})
    for form, good, bad, options in (
        ("json", b'{"id": 7}', b"no order", {"schema": "id bigint"}),
        ("avro", stream.getvalue(), b"", {"schema_file": str(tmp_path / "order.avsc")}),
    ):
        (tmp_path / form).mkdir()
        records = raw(spark, tmp_path / form, [good, bad])
        stop, drop = (topic("t", format=form, bad_records=how, **options) for how in ("stop", "drop"))
        assert [row.id for row in decoded(records, drop).where("id > 0").collect()] == [7]
        for query in ("id > 0", "id < 0", "id IS NOT NULL AND _offset >= 0"):
            with pytest.raises(Exception, match=f"{BAD_RECORD} in t, partition 0, offset 1"):
                decoded(records, stop).where(query).collect()


def test_json_is_read_once_however_many_columns_are_asked_for(spark, tmp_path):
    source = topic("orders", format="json", schema="id bigint, name string, shop string")
    rows = (
        decoded(raw(spark, tmp_path, [*GOOD]), source).where("id > 0 AND shop IS NULL").select("id", "name")
    )
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("from_json(") == 1
