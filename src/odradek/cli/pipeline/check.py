"""`odradek pipeline check`: says whether a file can be run, without Spark; infers schemas that it lacks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from odradek.cli.connecting import Failed, friendly_errors
from odradek.cli.options import UsageProblem, check_readable
from odradek.cli.pipeline.files import file_errors, loaded


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--infer", is_flag=True, help="Write inferred schemas into YAML files that lack them.")
@click.option("--records", default=1000, show_default=True, help="How many records are sampled at most.")
def command(files: tuple[str, ...], infer: bool, records: int) -> None:
    """Check pipeline files: keys, names, schemas, and how the parts fit together."""
    from odradek.spark.pipeline.running.preflight import check_options  # noqa: PLC0415

    for file in files:
        check_readable(file)
        if infer and file.endswith(".py"):
            raise UsageProblem(
                f"{file}: --infer writes into YAML files only; `odradek pipeline new NAME --topic TOPIC "
                "--sample --python` writes a Python file with a schema"
            )
        if infer:
            with friendly_errors(), file_errors():
                _infer(Path(file), records)
        pipeline = loaded(file)
        with file_errors():
            check_options(pipeline)
        parts = [
            _counted(len(pipeline.sources), "source"),
            _counted(len(pipeline.steps), "transform"),
            _counted(len(pipeline.sinks), "sink"),
        ]
        click.echo(f"{file}: the pipeline {pipeline.name} is valid: {', '.join(parts)}.")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _infer(file: Path, records: int) -> None:
    """Put a schema after `format: json` wherever none is given; an error leaves the file as it was."""
    from odradek.spark.pipeline.definition.infer import infer_fields  # noqa: PLC0415
    from odradek.spark.pipeline.definition.load import text_of  # noqa: PLC0415
    from odradek.spark.pipeline.definition.new_file import with_schema  # noqa: PLC0415
    from odradek.spark.pipeline.definition.sample import sample_values  # noqa: PLC0415
    from odradek.spark.pipeline.definition.types import WrongType  # noqa: PLC0415
    from odradek.spark.pipeline.definition.yaml_file import without_schema  # noqa: PLC0415

    text = text_of(file)
    found = []
    for source in without_schema(text, str(file)):
        values = sample_values(source.bootstrap, source.topic, records)
        try:
            fields = infer_fields(values)
        except WrongType as error:
            raise Failed(f"{file}: the source {source.name}: {error}") from None
        text = with_schema(text, source.line, fields)
        found.append(f"{file}: inferred {len(fields)} fields of {source.name} from {len(values)} records.")
    if not found:
        return
    if without_schema(text, str(file)):
        raise Failed(f"{file}: no place was found for the schema: write each key in a line of its own")
    _replace(file.resolve(), text)
    for line in found:
        click.echo(line)


def _replace(file: Path, text: str) -> None:
    """Write a file as a whole, or not at all."""
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(text.encode())
    shutil.copymode(file, new)
    os.replace(new, file)
