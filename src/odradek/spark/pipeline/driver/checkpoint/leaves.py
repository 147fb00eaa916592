"""Where the streams of a plan come from, in the order in which Spark keeps their offsets in a checkpoint.

That order is the plan's, from left to right, with a stream as often as it is used; not that of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.model import PipelineModel, Source, TopicSource
from odradek.spark.pipeline.driver.sinks.topic_sinks import PlannedQuery
from odradek.spark.pipeline.driver.sources import topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE, _DATA_SOURCE = "StreamingRelationV2", "StreamingRelation"
"""How Spark's plans name streams: of data sources that have tables, and of older ones, such as files."""


@dataclass(frozen=True, slots=True)
class StreamLeaf:
    """One stream of a plan: its format and its options, by their names in small letters."""

    format: str
    options: Mapping[str, str] = field(hash=False)


def stream_leaves(frame: DataFrame) -> list[StreamLeaf]:
    """The streams that a plan reads, from left to right."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [_leaf(leaves.apply(place)) for place in range(leaves.size())]
    return [leaf for leaf in found if leaf is not None]


def leaves_of(query: PlannedQuery) -> list[StreamLeaf]:
    """The streams of a query, and after them those of the dead letters that it writes."""
    return [
        leaf
        for frame in (query.frame, *(one.frame for one in query.letters))
        for leaf in stream_leaves(frame)
    ]


def source_names(query: PlannedQuery, pipeline: PipelineModel) -> list[str | None]:
    """The sources of a query in the order in which Spark reports its progress, None for files.

    Spark reports a stream that is read twice only once.
    """
    sources = [source_of_leaf(leaf, pipeline) for leaf in dict.fromkeys(leaves_of(query))]
    return [source.name if isinstance(source, TopicSource) else None for source in sources]


def _leaf(node: Any) -> StreamLeaf | None:
    """None for what is no stream, or only names one, such as the use of a common table expression."""
    kind = node.getClass().getSimpleName()
    if kind == _TABLE:
        options = dict(node.extraOptions().asCaseSensitiveMap())
        return StreamLeaf(node.sourceName(), {name.lower(): value for name, value in options.items()})
    if kind == _DATA_SOURCE:
        given = node.dataSource().options()
        return StreamLeaf(node.sourceName(), {"path": given.apply("path")} if given.contains("path") else {})
    return None


def source_of_leaf(leaf: StreamLeaf, pipeline: PipelineModel) -> Source | None:
    """The source of the pipeline that is read so; None for a stream that a step made by itself."""
    for source in pipeline.sources:
        if isinstance(source, TopicSource):
            wanted = {name.lower(): value for name, value in topic_options(pipeline, source).items()}
            if leaf.format == pipeline.connector_of(source) and leaf.options == wanted:
                return source
        elif leaf.options.get("path") == source.path:
            return source
    return None


def order_difference(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the streams of a checkpoint are not those of a plan in number or order; None if they may be."""
    read, reads = (", ".join(one["name"] for one in leaves) or "nothing" for leaves in (before, now))
    if len(before) != len(now):
        return f"it has the offsets of {len(before)} sources ({read}), and now {len(now)} are read ({reads})"
    is_moved = [_subject(one) for one in before] != [_subject(one) for one in now]
    if is_moved and sorted(map(_subject, before)) == sorted(map(_subject, now)):
        return f"it has the offsets of {read} in this order, and they are now read as {reads}"
    return None


def _subject(leaf: Mapping[str, Any]) -> str:
    """What is read, without the name that the file gives it."""
    return repr([leaf[key] for key in ("topics", "pattern", "path")])
