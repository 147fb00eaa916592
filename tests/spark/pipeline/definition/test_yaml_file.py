"""YAML files: what they become, and that each mistake is named with its line."""

from __future__ import annotations

import pytest

from odradek.spark.pipeline.definition.checks import check
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import FileSink, SqlStep, TopicSource, Watermark
from odradek.spark.pipeline.definition.yaml_file import parse, without_schema

GOOD = """\
name: archive
bootstrap: ${BROKERS:-localhost:9092}
sources:
  orders:
    topic: orders
    format: json
    schema: {id: bigint not null, at: timestamp}
    bad_records: dead-letter
    watermark: {column: at, delay: 10 minutes}
    start: 2026-01-31T12:00Z
transforms:
  daily: |
    SELECT *, date(at) AS date FROM orders
sinks:
  files:
    from: daily
    parquet: out
    partition_by: date
dead_letters: orders-dead
restart: {attempts: 2, delay: 1 second}
"""
WITH_SCHEMA = """\
    format: json
    schema: {id: bigint not null, at: timestamp}
    bad_records: dead-letter
    watermark: {column: at, delay: 10 minutes}
"""


def parsed(text: str):
    pipeline = parse(text, "/there/archive.yaml", {"BROKERS": "a:1"})
    check(pipeline)
    return pipeline


def test_a_file_becomes_a_pipeline():
    pipeline = parsed(GOOD)

    (source,) = pipeline.sources
    assert isinstance(source, TopicSource)
    assert (source.topics, source.watermark) == (("orders",), Watermark(column="at", delay="10 minutes"))
    assert source.start == 1_769_860_800_000
    (sink,) = pipeline.sinks
    assert isinstance(sink, FileSink)
    assert (sink.path, sink.partition_by, sink.input) == ("/there/out", ("date",), "daily")
    assert (pipeline.bootstrap, pipeline.checkpoint) == ("a:1", "/there/archive.checkpoint")
    assert parsed(GOOD + "trigger: 500 ms\n").trigger == "500 milliseconds"
    assert (pipeline.restart.attempts, pipeline.restart.delay_s) == (2, 1.0)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("format: json", "fromat: json", "6: unknown key 'fromat'; did you mean format?"),
        ("bigint not null", "bigit", "7: unknown type 'bigit'"),
        ("column: at", "column: when", "9: the watermark's column 'when' is not in the schema: id, at"),
        ("10 minutes", "ten minutes", "9: watermark is 'ten minutes'; write it like `10 seconds`"),
        ("2026-01-31T12:00Z", "tomorrow", "10: start is 'tomorrow'; it must be earliest, latest or a time"),
        ("from: daily", "from: dayly", "16: no source or step is named 'dayly'; did you mean daily?"),
        ("parquet: out", "parket: out", "16: the sink files needs one of topic, parquet"),
        ("dead_letters: orders-dead", "", "8: bad_records is dead-letter, and there is no topic for them"),
        ("dead_letters: orders-dead", "dead_letters: orders", "19: dead_letters is the topic orders, which"),
        ("attempts: 2", "attempts: -1", "20: attempts is -1; it must be 0 or more"),
        ("name: archive\n", "", "1: the key 'name' is missing"),
        ("    format: json", "    format: json\n    format: avro", "7: the key 'format' is there twice"),
        ("${BROKERS:-localhost:9092}", "${NOTHING}", "2: the environment variable NOTHING is not set"),
        ("${BROKERS:-localhost:9092}", "localhost", "2: bootstrap: 'localhost' is not host:port"),
        (
            "    schema: {id: bigint not null, at: timestamp}\n",
            "",
            "6: format json needs a schema; write one",
        ),
        ("partition_by: date", "partition_by:", "18: partition_by is None; it must be names of columns"),
        ("from: daily", "from: 5", "16: from is 5; it must be a text"),
        ("delay: 10 minutes", "delay:", "9: watermark is ''; write it like"),
        ("column: at", "column: 5", "9: the watermark's column is 5; it must be a name"),
        ("{id: bigint not null, at: timestamp}", "[id, at]", "7: a schema is a text such as `id bigint"),
        ("delay: 1 second", "delay:", "20: delay is ''; write it like"),
        ("    topic: orders", "    pattern: 5", "5: pattern is 5; it must be a text"),
        ("dead_letters: orders-dead", "dead_letters:", "1: the key 'topic' is missing"),
        (
            "    bad_records: dead-letter\n",
            "    table: true\n    max_offsets_per_trigger: 5\n",
            "9: a table is read as a whole: leave out max_offsets_per_trigger, or table",
        ),
        (
            "    bad_records: dead-letter\n",
            "    table: true\n",
            "3: all sources are tables, which are read once: leave out `table` for a topic",
        ),
        (
            WITH_SCHEMA,
            "    format: text\n    bad_records: dead-letter\n",
            "7: every record fits the format text, so that none is bad: leave out bad_records",
        ),
        (WITH_SCHEMA, "    bad_records: drop\n", "6: every record fits the format none, so that none is bad"),
        (
            WITH_SCHEMA,
            "    format: text\n    skip_bytes: 5\n",
            "7: format text skips no bytes: leave out skip_bytes",
        ),
        ("sinks:", "sinks: [", "16: this is not YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line(old, new, error):
    assert old in GOOD
    with pytest.raises(PipelineError) as raised:
        parsed(GOOD.replace(old, new, 1))
    assert str(raised.value).startswith(f"/there/archive.yaml:{error}")


def with_limit(limit: str, variables: dict[str, str], more: str = "") -> TopicSource:
    text = GOOD.replace(
        "    format: json\n", f"    format: json\n    max_offsets_per_trigger: {limit}\n{more}"
    )
    (source,) = parse(text, "f.yaml", variables).sources
    assert isinstance(source, TopicSource)
    return source


def test_variables_give_numbers_and_flags_where_they_stand_without_quotes():
    assert with_limit("${LIMIT:-4}", {}).max_offsets_per_trigger == 4
    assert with_limit("${LIMIT:-4}", {"LIMIT": "500"}).max_offsets_per_trigger == 500
    assert with_limit("${A}${B}", {"A": "1", "B": "2"}).max_offsets_per_trigger == 12
    with pytest.raises(PipelineError, match="max_offsets_per_trigger is '4'; it must be a whole number"):
        with_limit('"${LIMIT:-4}"', {})
    with pytest.raises(PipelineError, match="max_offsets_per_trigger is '4x'; it must be a whole number"):
        with_limit("${LIMIT}", {"LIMIT": "4x"})
    flag = "    table: ${FLAG}\n"
    assert not with_limit("5", {"FLAG": "false"}, flag).is_table
    with pytest.raises(PipelineError, match="a table is read as a whole"):
        with_limit("5", {"FLAG": "true"}, flag)


@pytest.mark.parametrize(
    "value", ["007", "1e5", "yes", "null", "~", "", "0x10", "1_000", "+1", "a: b", "5", "-5"]
)
def test_a_variable_in_an_option_is_the_text_that_it_was(value):
    options = "    options:\n      kafka.sasl.password: ${SECRET}\n"
    assert with_limit("5", {"SECRET": value}, options).options["kafka.sasl.password"] == value


def test_a_second_dollar_makes_a_variable_literal():
    text = GOOD.replace("date(at) AS date", "'$${BROKERS} $${X:-y} ${BROKERS} ${a.b} $5' AS date")
    (step,) = parsed(text).steps
    assert isinstance(step, SqlStep)
    assert step.text == "SELECT *, '${BROKERS} ${X:-y} a:1 ${a.b} $5' AS date FROM orders\n"


LOOPED = GOOD.replace("parquet: out\n    partition_by: date", "topic: orders-out")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            LOOPED.replace("topic: orders-out", "topic: orders"),
            "the sink writes into orders, which the source",
        ),
        (LOOPED.replace("topic: orders\n", "pattern: orders.*\n"), "the sink writes into orders-out, which"),
        (
            LOOPED.replace("topic: orders\n", "pattern: o.*s|.*-dead\n"),
            "dead_letters is the topic orders-dead",
        ),
        (
            LOOPED.replace("bootstrap: $", "bootstrap: b:2,$").replace(
                "topic: orders\n", "pattern: .*-out\n    bootstrap: b:2\n"
            ),
            "the sink writes into orders-out",
        ),
    ],
)
def test_topics_that_would_be_read_again_for_ever_are_refused(text, error):
    with pytest.raises(PipelineError, match=error):
        parsed(text)


@pytest.mark.parametrize(
    "text",
    [
        LOOPED.replace("topic: orders\n", "pattern: orders\n"),  # the whole name, not a part of it
        LOOPED.replace("topic: orders\n", "pattern: orders.*\n    bootstrap: other:9092\n"),
        LOOPED.replace("topic: orders\n", "topic: orders-out\n    bootstrap: other:9092\n"),
        LOOPED.replace("topic: orders\n", "topic: orders-dead\n    bootstrap: other:9092\n"),
        LOOPED.replace("dead_letters: orders-dead", "dead_letters: {topic: orders, bootstrap: 'other:9092'}"),
    ],
)
def test_topics_that_are_not_read_or_are_of_another_cluster_are_no_loop(text):
    assert parsed(text).dead_letters is not None


def test_sources_that_lack_a_schema_are_found_with_the_line_where_it_belongs():
    text = GOOD.replace("    schema: {id: bigint not null, at: timestamp}\n", "")
    (found,) = without_schema(text, "f.yaml", {"BROKERS": "a:1"})
    assert (found.name, found.topic, found.bootstrap, found.line) == ("orders", "orders", "a:1", 6)
