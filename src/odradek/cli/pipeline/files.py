"""Loads pipeline files for commands: what is wrong with a file is an error of usage, exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.cli.options import UsageProblem, check_readable

if TYPE_CHECKING:
    from odradek.spark.pipeline.definition.model import PipelineModel


@contextmanager
def file_errors() -> Iterator[None]:
    """PipelineError becomes a message."""
    from odradek.spark.pipeline.definition.errors import PipelineError  # noqa: PLC0415

    try:
        yield
    except PipelineError as error:
        raise UsageProblem(str(error)) from None


def loaded(file: str, bootstrap: str | None = None) -> PipelineModel:
    """The pipeline of a file, checked."""
    from odradek.spark.pipeline.definition.load import load  # noqa: PLC0415

    check_readable(file)
    with file_errors():
        return load(file, bootstrap)
