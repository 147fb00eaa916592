"""The DataFrames of a pipeline: sources, then steps by SQL and Python, each a temporary view."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import (
    PipelineModel,
    PythonStep,
    Source,
    SqlStep,
    TopicSource,
    Watermark,
)
from odradek.spark.pipeline.driver.decoding.decoding import decoded
from odradek.spark.pipeline.driver.sources import file_table, raw_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINE = re.compile(r"line (\d+),? pos")
"""Spark's parser writes `(line 2, pos 4)`, its analyzer `line 2 pos 4`."""


def frames_of(spark: SparkSession, pipeline: PipelineModel) -> dict[str, DataFrame]:
    """All tables of a pipeline by name; PipelineError names the step that Spark refuses."""
    frames: dict[str, DataFrame] = {}
    for source in pipeline.sources:
        with _refusals(source.place):
            _add(frames, source.name, _source_frame(spark, pipeline, source))
    for step in pipeline.steps:
        if isinstance(step, SqlStep):
            with _refusals(step.place, step.text):
                _add(frames, step.name, _watermarked(spark.sql(step.text), step.watermark))
        else:
            with _refusals(step.place):
                _add(frames, step.name, _called(spark, step, frames))
    return frames


def _source_frame(spark: SparkSession, pipeline: PipelineModel, source: Source) -> DataFrame:
    if isinstance(source, TopicSource):
        frame = decoded(raw_records(spark, pipeline, source), source)
    else:
        frame = file_table(spark, source)
    return _watermarked(frame, source.watermark)


def _watermarked(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    return frame if watermark is None else frame.withWatermark(watermark.column, watermark.delay)


def _add(frames: dict[str, DataFrame], name: str, frame: DataFrame) -> None:
    frame.createOrReplaceTempView(name)
    frames[name] = frame


def _called(spark: SparkSession, step: PythonStep, frames: dict[str, DataFrame]) -> DataFrame:
    given = {name: spark if name == "spark" else frames[name] for name in step.inputs}
    found = step.function(**given)
    if not hasattr(found, "createOrReplaceTempView"):
        raise PipelineError(f"{step.name} must return a DataFrame, not {type(found).__name__}", step.place)
    return found


class _refusals:  # noqa: N801 - used as a function
    """What Spark says about a step, as one sentence with the place in the file."""

    def __init__(self, place: Any, text: str = "") -> None:
        self.place = place
        self.text = text

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: Any, error: BaseException | None, traceback: Any) -> None:
        from pyspark.errors import PySparkException  # noqa: PLC0415

        if error is None or isinstance(error, PipelineError) or not isinstance(error, Exception):
            return
        if isinstance(error, PySparkException):
            sentence = analysis_sentence(str(error))
            raise PipelineError(sentence + _line_in(str(error)), self.place) from None
        line = _line_in_file(self.place.file, traceback)
        raise PipelineError(f"{type(error).__name__}: {error}{line}", self.place) from error


def _line_in(message: str) -> str:
    found = _LINE.search(message)
    return f" (line {found.group(1)} of the SQL)" if found else ""


def _line_in_file(file: str, traceback: Any) -> str:
    lines = [frame.lineno for frame in inspect.getinnerframes(traceback) if frame.filename == file]
    return f" (line {lines[-1]})" if lines else ""


def analysis_sentence(message: str) -> str:
    """The first sentence of Spark's message, without its error class and the plan."""
    text = re.sub(r"^\[[A-Z_0-9.]+\]\s*", "", message.strip())
    text = re.split(r"\s*SQLSTATE:|;?\s*\(?line \d+,? pos|\n", text, maxsplit=1)[0]
    return text.strip().rstrip(".;") or message.strip()[:200]
