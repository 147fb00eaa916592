"""Avro, Protobuf, Arrow and text beside JSON in one pipeline, joined with a topic that is a table."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.spark.pipeline.definition.schema_files import message_descriptor
from spark.pipeline.driver.decoding.test_decoders import protobuf_files
from spark.transactions.test_foreach_batch import committed_values

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
PIPELINE = """\
name: formats
bootstrap: {bootstrap}
sources:
  avros: {{topic: {topic}-avro, format: avro, schema_file: order.avsc, skip_bytes: 5,
          bad_records: dead-letter}}
  protos: {{topic: {topic}-proto, format: protobuf, schema_file: order.desc, message: shop.Order,
           bad_records: dead-letter}}
  arrows: {{topic: {topic}-arrow, format: arrow, schema: id bigint, bad_records: dead-letter}}
  texts: {{topic: {topic}-text, format: text}}
  names: {{topic: {topic}-names, format: json, schema: {{id: bigint, name: string}}, table: true}}
transforms:
  everything: |
    SELECT 'avro' AS format, id FROM avros UNION ALL SELECT 'proto', id FROM protos
    UNION ALL SELECT 'arrow', id FROM arrows UNION ALL SELECT 'text', CAST(value AS bigint) FROM texts
  named: SELECT format, e.id, name FROM everything e LEFT JOIN names n ON e.id = n.id
sinks:
  out: {{from: named, topic: {topic}-out}}
dead_letters: {topic}-dead
"""


def avro(number: int) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), {"id": number})
    return b"\0\0\0\0\1" + stream.getvalue()


def proto(number: int) -> bytes:
    return GetMessageClass(message_descriptor(protobuf_files(), "shop.Order"))(id=number).SerializeToString()


def arrow(*numbers: int) -> bytes:
    stream = io.BytesIO()
    table = pa.table({"id": numbers})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


@pytest.mark.long
def test_every_format_streams_through_spark_and_bad_values_are_dead_letters(spark, runner, bootstrap, topic):
    librdkafka = Librdkafka(bootstrap)

    def write(name: str, *values: bytes) -> None:
        records = [Record(value, headers=(("place", b"%d" % place),)) for place, value in enumerate(values)]
        librdkafka.produce(f"{topic}-{name}", records)

    for name in ("avro", "proto", "arrow", "text", "names", "out", "dead"):
        librdkafka.create_topic(f"{topic}-{name}")
    (runner.directory / "order.avsc").write_text(json.dumps(AVRO))
    (runner.directory / "order.desc").write_bytes(protobuf_files())
    runner.write("formats.yaml", PIPELINE.format(bootstrap=bootstrap, topic=topic))
    write("names", b'{"id": 1, "name": "one"}', b'{"id": 2, "name": "two"}')
    write("avro", avro(1), b"\0\0\0\0\1", avro(2))
    write("proto", proto(1), b"\xff\xff")
    write("arrow", arrow(1, 2), b"no stream")
    write("text", b"1")
    runner.run("formats.yaml", trigger="once")

    found = [json.loads(value) for value in committed_values(spark, bootstrap, f"{topic}-out")]
    assert sorted((row["format"], row["id"], row["name"]) for row in found) == [
        ("arrow", 1, "one"),
        ("arrow", 2, "two"),
        ("avro", 1, "one"),
        ("avro", 2, "two"),
        ("proto", 1, "one"),
        ("text", 1, "one"),
    ]
    bad = [b"\0\0\0\0\1", b"no stream", b"\xff\xff"]
    assert sorted(committed_values(spark, bootstrap, f"{topic}-dead")) == bad
    letters = runner.records(bootstrap, f"{topic}-dead")
    headers = [{one.key: bytes(one.value).decode() for one in row.headers} for row in letters if row.headers]
    assert [(one["place"], one["odradek.offset"]) for one in headers] == [("1", "1")] * 3
    read = [event for event in runner.events if event["event"] == "progress"]
    assert sum(row["rows_in"] for row in read) == 8

    write("names", b'{"id": 3, "name": "three"}')
    write("avro", avro(3))
    runner.run("formats.yaml", trigger="once")
    found = [json.loads(value) for value in committed_values(spark, bootstrap, f"{topic}-out")]
    assert [row for row in found if row["id"] == 3] == [{"format": "avro", "id": 3, "name": "three"}]
