"""Python files make the same model as YAML files, and their errors name the line too."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.spark.pipeline.definition.errors import NOWHERE, PipelineError
from odradek.spark.pipeline.definition.load import load

PYTHON = """\
from odradek.spark.pipeline import Pipeline, sql, to_parquet, to_topic, topic

{function}

pipeline = Pipeline(
    "both",
    sources=[topic("orders", format="json", schema="id bigint, at timestamp", watermark=("at", "1 hour"))],
    steps=[{steps}],
    sinks=[to_parquet("out", source="daily", partition_by="date"), to_topic("copies", source="orders")],
)
"""
YAML = """\
name: both
sources:
  orders: {topic: orders, format: json, schema: "id bigint, at timestamp",
           watermark: {column: at, delay: 1 hour}}
transforms:
  daily: SELECT *, date(at) AS date FROM orders
sinks:
  daily: {from: daily, parquet: out, partition_by: [date]}
  copies: {from: orders, topic: copies}
"""
SQL = 'sql("daily", "SELECT *, date(at) AS date FROM orders")'


def written(directory: Path, name: str, text: str) -> str:
    (directory / name).write_text(text)
    return str(directory / name)


def test_both_kinds_of_files_make_one_model(tmp_path):
    by_yaml = load(written(tmp_path, "a.yaml", YAML))
    by_python = load(written(tmp_path, "a.py", PYTHON.format(function="", steps=SQL)))
    assert replace(by_yaml, place=NOWHERE) == replace(by_python, place=NOWHERE)


def test_a_function_is_a_step_whose_parameters_are_its_inputs(tmp_path):
    function = "def daily(orders, spark):\n    return orders"
    (step,) = load(written(tmp_path, "a.py", PYTHON.format(function=function, steps="daily"))).steps
    assert (step.name, step.inputs) == ("daily", ("orders", "spark"))


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (PYTHON.format(function="def daily(ordres): ...", steps="daily"), 3, "daily names no source or step"),
        (
            PYTHON.format(function="", steps=SQL).replace('("orders",', '("orders", start="x",'),
            7,
            "start is 'x'",
        ),
        (PYTHON.format(function="1 +", steps=""), 3, "this is not Python"),
        (PYTHON.format(function="nothing.at_all()", steps=""), 3, "name 'nothing' is not defined"),
        (PYTHON.format(function="", steps=SQL).replace("schema=", "shema="), 7, "unexpected keyword"),
        ("x = 1\n", 0, "0 pipelines are in this file"),
    ],
)
def test_an_error_in_a_python_file_names_the_line(tmp_path, text, line, sentence):
    path = written(tmp_path, "a.py", text)
    with pytest.raises(PipelineError, match=sentence) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(PipelineError, match=r"ends with \.yaml or \.py"):
        load(written(tmp_path, "a.toml", ""))
    with pytest.raises(PipelineError, match="no such file"):
        load(str(tmp_path / "none.yaml"))


def test_spark_is_not_imported_for_a_check(tmp_path):
    load(written(tmp_path, "a.py", PYTHON.format(function="", steps=SQL)))
    assert "pyspark" not in sys.modules
