"""`odradek pipeline new`: writes a pipeline file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import DEFAULT_BOOTSTRAP, Failed, bootstrap_option, friendly_errors
from odradek.cli.options import UsageProblem
from odradek.cli.pipeline.files import file_errors

if TYPE_CHECKING:
    from odradek.spark.pipeline.definition.types import Field


@click.command("new")
@click.argument("name")
@click.option("--topic", help="The topic that it reads; NAME by default.")
@click.option("--sample", is_flag=True, help="Infer the schema from JSON values of the topic.")
@click.option("--records", default=1000, show_default=True, help="How many records are sampled at most.")
@click.option("--python", "is_python", is_flag=True, help="A Python file instead of YAML.")
@click.option("--directory", default=".", type=click.Path(file_okay=False), help="Where the file goes.")
@bootstrap_option
def command(
    name: str,
    topic: str | None,
    sample: bool,
    records: int,
    is_python: bool,
    directory: str,
    bootstrap: str,
) -> None:
    """Write NAME.yaml, a pipeline that archives a topic to Parquet, to be edited."""
    from odradek.spark.pipeline.definition.arguments import check_pipeline_name  # noqa: PLC0415
    from odradek.spark.pipeline.definition.errors import NOWHERE  # noqa: PLC0415
    from odradek.spark.pipeline.definition.new_file import python_text, yaml_text  # noqa: PLC0415

    with file_errors():
        check_pipeline_name(name, NOWHERE)
    file = Path(directory) / f"{name}.{'py' if is_python else 'yaml'}"
    if file.exists():
        raise UsageProblem(f"{file}: there is such a file already")
    fields = None
    if sample:
        with friendly_errors():
            fields = _inferred(bootstrap, topic or name, records)
    text = (python_text if is_python else yaml_text)(
        name, str(file), topic or name, bootstrap or DEFAULT_BOOTSTRAP, fields
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    click.echo(f"Wrote {file}; `odradek pipeline run {file}` runs it.")


def _inferred(bootstrap: str, topic: str, records: int) -> tuple[Field, ...]:
    from odradek.spark.pipeline.definition.infer import infer_fields  # noqa: PLC0415
    from odradek.spark.pipeline.definition.sample import sample_values  # noqa: PLC0415
    from odradek.spark.pipeline.definition.types import WrongType  # noqa: PLC0415

    values = sample_values(bootstrap, topic, records)
    if not values:
        raise Failed(f"the topic {topic} is empty, so that no schema can be inferred from it")
    try:
        return infer_fields(values)
    except WrongType as error:
        raise Failed(f"{topic}: {error}") from None
