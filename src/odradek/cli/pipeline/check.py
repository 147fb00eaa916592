"""`odradek pipeline check`: says whether a file can be run, without Spark; infers schemas that it lacks."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.connecting import Failed, friendly_errors
from odradek.cli.options import check_readable
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
        if infer and not file.endswith(".py"):
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
    """Put a schema after `format: json` wherever none is given."""
    from odradek.spark.pipeline.definition.infer import infer_fields  # noqa: PLC0415
    from odradek.spark.pipeline.definition.new_file import with_schema  # noqa: PLC0415
    from odradek.spark.pipeline.definition.sample import sample_values  # noqa: PLC0415
    from odradek.spark.pipeline.definition.types import WrongType  # noqa: PLC0415
    from odradek.spark.pipeline.definition.yaml_file import without_schema  # noqa: PLC0415

    text = file.read_text(encoding="utf-8")
    for source in without_schema(text, str(file)):
        values = sample_values(source.bootstrap, source.topic, records)
        try:
            fields = infer_fields(values)
        except WrongType as error:
            raise Failed(f"{file}: the source {source.name}: {error}") from None
        text = with_schema(text, source.line, fields)
        click.echo(f"{file}: inferred {len(fields)} fields of {source.name} from {len(values)} records.")
    file.write_text(text, encoding="utf-8")
