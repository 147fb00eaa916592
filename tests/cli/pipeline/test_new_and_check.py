"""`odradek pipeline new` and `check`, with schemas inferred from a topic."""

from __future__ import annotations

from pathlib import Path

from odradek.spark.pipeline.definition.load import load


def test_a_new_file_is_valid(cli, tmp_path):
    for flags, suffix in (((), "yaml"), (("--python",), "py")):
        cli.run("pipeline", "new", "archive", "--directory", str(tmp_path), *flags)
        (line,) = cli.lines("pipeline", "check", str(tmp_path / f"archive.{suffix}"))
        assert "the pipeline archive is valid" in line

    again = cli.error("pipeline", "new", "archive", "--directory", str(tmp_path), exit_code=2)
    assert "there is such a file already" in again


def test_a_schema_is_inferred_from_a_sample_and_frozen_into_the_file(cli, make_topic, tmp_path):
    topic = make_topic("--partitions", "2")
    lines = '{"id": 1, "at": "2026-01-31T12:00:00Z"}\nbroken\n{"id": 2.5}\n'
    cli.run("produce", topic, typed=lines)

    for flags in ((), ("--python",)):
        made = cli.lines(
            "pipeline", "new", "sampled", "--topic", topic, "--sample", "--directory", str(tmp_path), *flags
        )
        file = made[0].split()[1].rstrip(";")
        assert {one.name: one.type for one in load(file).sources[0].schema.fields} == {
            "id": "double",
            "at": "timestamp",
        }

    file = tmp_path / "lacking.yaml"
    sink = "sinks: {all: {from: s, parquet: out}}"
    source = f"sources:\n  s:\n    topic: {topic}\n    format: json\n"
    file.write_text(f"name: lacking\nbootstrap: {cli.bootstrap}\n{source}{sink}\n")
    assert "needs a schema" in cli.error("pipeline", "check", str(file), exit_code=2)
    assert "inferred 2 fields of s from 3 records" in cli.lines("pipeline", "check", "--infer", str(file))[0]
    assert "      id: double\n" in Path(file).read_text()


def test_a_file_into_which_no_schema_can_be_put_stays_as_it_is(cli, make_topic, tmp_path):
    topic = make_topic()
    cli.run("produce", topic, typed='{"id": 1}\n')
    file = tmp_path / "lacking.yaml"

    def refused(source: str) -> str:
        sinks = "sinks: {all: {from: s, parquet: out}}"
        text = f"name: lacking\nbootstrap: {cli.bootstrap}\nsources:\n{source}{sinks}\n"
        file.write_text(text)
        said = cli.error("pipeline", "check", "--infer", str(file), exit_code=2)
        assert file.read_text() == text
        return said

    braces = refused(f"  s: {{topic: {topic}, format: json}}\n")
    assert "lacking.yaml:4: the schema of s cannot be put between braces" in braces
    assert "is not YAML" in refused(f"  s:\n    topic: {topic}\n    format:\n      json\n")
    assert list(tmp_path.iterdir()) == [file]

    program = tmp_path / "lacking.py"
    program.write_text("")
    said = cli.error("pipeline", "check", "--infer", str(program), exit_code=2)
    assert "--infer writes into YAML files only" in said


def test_a_missing_topic_is_one_sentence(cli, tmp_path):
    text = cli.error("pipeline", "new", "n", "--topic", "nowhere", "--sample", "--directory", str(tmp_path))
    assert text.startswith("Error: ")
    assert "nowhere" in text
    assert not (tmp_path / "n.yaml").exists()
