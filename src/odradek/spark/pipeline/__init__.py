"""Pipelines: topics become tables and other topics, declared in one file. See docs/pipelines.md.

from odradek.spark.pipeline import Pipeline, sql, to_parquet, topic
"""

from odradek.spark.pipeline.definition.declare import dead_letters as dead_letters
from odradek.spark.pipeline.definition.declare import files as files
from odradek.spark.pipeline.definition.declare import pipeline as Pipeline  # noqa: F401, N812
from odradek.spark.pipeline.definition.declare import restart as restart
from odradek.spark.pipeline.definition.declare import sql as sql
from odradek.spark.pipeline.definition.declare import to_console as to_console
from odradek.spark.pipeline.definition.declare import to_delta as to_delta
from odradek.spark.pipeline.definition.declare import to_parquet as to_parquet
from odradek.spark.pipeline.definition.declare import to_snapshot as to_snapshot
from odradek.spark.pipeline.definition.declare import to_topic as to_topic
from odradek.spark.pipeline.definition.declare import topic as topic
from odradek.spark.pipeline.definition.errors import PipelineError as PipelineError
