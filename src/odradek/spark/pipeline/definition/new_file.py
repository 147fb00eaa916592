"""Texts of new pipeline files, and the schema of a sample put into a file that lacks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from odradek.spark.pipeline.definition.arguments import name_from
from odradek.spark.pipeline.definition.types import Field

_WORDS_OF_YAML = ("yes", "no", "on", "off", "null", "y", "n", "true", "false")

_YAML = """\
# {title}: what it does. `odradek pipeline check {file}` checks it, `odradek pipeline run {file}` runs it.
name: {name}
bootstrap: {bootstrap}

sources:
  {table}:
    topic: {topic}
    start: earliest                # or latest, or a time: 2026-01-31T12:00Z
{schema}
transforms:
  {result}: |
    SELECT * FROM {table}

sinks:
  {result}:
    from: {result}
{sink}"""

_PYTHON = '''\
"""{name}: what it does. `odradek pipeline check {file}` checks it, `odradek pipeline run {file}` runs it."""

from odradek.spark.pipeline import Pipeline, to_parquet, topic


def {result}({table}):
    """From DataFrames, named by the parameters, to a DataFrame."""
    return {table}


pipeline = Pipeline(
    "{name}",
    bootstrap="{bootstrap}",
    sources=[{source}],
    steps=[{result}],
    sinks=[to_parquet("{name}-output", source="{result}")],
)
'''


def yaml_text(name: str, file: str, topic: str, bootstrap: str, fields: Iterable[Field] | None) -> str:
    """A YAML pipeline that archives a topic; without fields the records stay bytes."""
    table = name_from(topic)
    if fields is None:
        schema = "    format: none                   # json, avro, protobuf, arrow, text\n"
    else:
        schema = "    format: json\n" + "".join(line + "\n" for line in schema_lines(fields, 4))
        schema += f"    bad_records: dead-letter\n\ndead_letters: {_key(topic + '-dead')}\n"
    sink = f"    parquet: {_key(name + '-output')}\n"
    return _YAML.format(
        title=name,
        name=_key(name),
        file=file,
        topic=_key(topic),
        bootstrap=bootstrap,
        schema=schema,
        sink=sink,
        table=table,
        result=_result(table),
    )


def python_text(name: str, file: str, topic: str, bootstrap: str, fields: Iterable[Field] | None) -> str:
    """The same in Python."""
    table = name_from(topic)
    source = f'topic("{topic}")'
    if fields is not None:
        rows = "".join(f"                {_text(one.name)}: {_text(one.type)},\n" for one in fields)
        inner = f'            "{topic}",\n            format="json",\n'
        inner += f"            schema={{\n{rows}            }},\n"
        source = f"\n        topic(\n{inner}        ),\n    "
    return _PYTHON.format(
        name=name,
        file=file,
        topic=topic,
        bootstrap=bootstrap,
        source=source,
        table=table,
        result=_result(table),
    )


def _result(table: str) -> str:
    """The name of the step, which is not that of the source."""
    return "result" if table.lower() != "result" else "output"


def schema_lines(fields: Iterable[Field], indent: int) -> list[str]:
    """The key `schema` of a YAML file."""
    pad = " " * indent
    return [f"{pad}schema:", *(f"{pad}  {_key(one.name)}: {_scalar(one.type)}" for one in fields)]


def with_schema(text: str, line: int, fields: Iterable[Field]) -> str:
    """A YAML text with a schema after one line, at that line's indentation."""
    lines = text.split("\n")
    above = lines[line - 1]
    indent = len(above) - len(above.lstrip())
    lines[line:line] = schema_lines(fields, indent)
    return "\n".join(lines)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in _WORDS_OF_YAML
    return name if is_plain else _text(name)


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[\w(),<>]+", text) else "'" + text.replace("'", "''") + "'"
