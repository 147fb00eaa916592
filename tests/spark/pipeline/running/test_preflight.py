"""Options and Java are checked before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek import Admin
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.yaml_file import parse
from odradek.spark.pipeline.running.preflight import CannotRun, check_java, check_options, check_topics
from odradek.testing import Cluster

TEXT = """\
name: copy
sources:
  orders:
    topic: orders
    options: {maxRecordsPerPartition: 100}
sinks:
  copies:
    from: orders
    topic: copies
    format: none
    options: {includeTimestamp: true}
"""


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("maxRecordsPerPartition: 100", "startingOffset: latest", "5: unknown option 'startingoffset'"),
        ("maxRecordsPerPartition: 100", "failOnDataLoss: maybe", "5: the option failOnDataLoss is 'maybe'"),
        ("maxRecordsPerPartition: 100", "kafka.fetch.min.byte: 1", "5: an option that begins with kafka. is"),
        ("includeTimestamp: true", "delivery: twice", "11: the option delivery is 'twice'"),
        ("includeTimestamp: true", "kafka.ack: all", "11: an option that begins with kafka. is wrong"),
    ],
)
def test_a_wrong_option_is_named_with_its_line(old, new, error):
    check_options(parse(TEXT, "copy.yaml", {}))
    with pytest.raises(PipelineError) as raised:
        check_options(parse(TEXT.replace(old, new), "copy.yaml", {}))
    assert str(raised.value).startswith(f"copy.yaml:{error}")


def test_options_of_the_official_connector_are_left_to_it():
    check_options(parse(f"connector: kafka\n{TEXT.replace('maxRecords', 'kafkaRecords')}", "copy.yaml", {}))


def a_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(("version", "said"), [("11.0.22", "Java 11"), ("1.8.0_392", "Java 8")])
def test_a_java_that_is_too_old_is_named(tmp_path, version, said):
    java = a_java(tmp_path, version)
    for environment in ({"JAVA_HOME": str(tmp_path)}, {"PATH": str(java.parent)}):
        with pytest.raises(CannotRun, match=f"{java} is {said}, and Spark needs 17"):
            check_java(environment)


def test_java_17_and_later_are_taken_and_none_is_a_sentence(tmp_path):
    for version in ("17.0.9", "21", "24-ea"):
        a_java(tmp_path / version, version)
        check_java({"JAVA_HOME": str(tmp_path / version)})
    with pytest.raises(CannotRun, match="Java was not found: install Java 17"):
        check_java({"PATH": str(tmp_path)})
    with pytest.raises(CannotRun, match="which has no bin/java"):
        check_java({"JAVA_HOME": str(tmp_path)})


def test_a_topic_that_is_written_must_be_there_unless_the_brokers_make_it():
    letters = "    bad_records: dead-letter\n    format: json\n    schema: id bigint\n"
    text = TEXT.replace("    options: {maxR", f"{letters}    options: {{maxR") + "dead_letters: dead\n"
    with Cluster({"auto.create.topics.enable": "false"}) as cluster:
        pipeline = parse(f"bootstrap: {cluster.bootstrap}\n{text}", "copy.yaml", {})
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            for missing, line in (("orders", 5), ("copies", 13), ("dead", 16)):
                with pytest.raises(PipelineError) as raised:
                    check_topics(pipeline)
                said = (
                    f"copy.yaml:{line}: there is no topic {missing!r} at {cluster.bootstrap}; `odradek topics"
                )
                assert str(raised.value).startswith(said)
                admin.create_topic(missing)
        check_topics(pipeline)
    with Cluster() as cluster:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topic("orders")
        check_topics(parse(f"bootstrap: {cluster.bootstrap}\n{text}", "copy.yaml", {}))
