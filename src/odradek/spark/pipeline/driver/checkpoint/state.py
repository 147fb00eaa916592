"""What a query keeps between its micro-batches, as plain data: compared before a checkpoint is used again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.model import (
    FileSink,
    PipelineModel,
    SnapshotSink,
    Source,
    TopicSource,
)
from odradek.spark.pipeline.driver.checkpoint.directory_contents import contents_difference, contents_of
from odradek.spark.pipeline.driver.checkpoint.leaves import (
    StreamLeaf,
    leaves_of,
    order_difference,
    source_of_leaf,
)
from odradek.spark.pipeline.driver.lineage import tables_needed
from odradek.spark.pipeline.driver.sinks.topic_sinks import LETTERS, PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATEFUL = (
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "FlatMapGroupsInPandasWithState",
    "Join",
    "TransformWithState",
    "TransformWithStateInPandas",
    "TransformWithStateInPySpark",
)
_NODE = re.compile(r"^[ |:+-]*(~?)([A-Z]\w+)\b(.*)$")
_IDS = re.compile(r"#\d+L?|-T\d+ms|@[0-9a-f]+")
_ALIASES = re.compile(r" AS `?[\w()]+`?(?=[,\]])")


def kept_by(
    query: PlannedQuery, pipeline: PipelineModel, clusters: Mapping[str, str | None]
) -> dict[str, Any]:
    """What must stay the same for the checkpoint of this query to be used again.

    `clusters`: cluster ids by bootstrap servers.
    """
    sink = query.sink
    table = query.name.removeprefix(LETTERS) if sink is None else sink.input
    needed = tables_needed(pipeline, table)
    sources = [source for source in pipeline.sources if source.name in needed and not _is_table(source)]
    letters = {one.name.removeprefix(LETTERS) for one in query.letters}
    read_again = [source for source in pipeline.sources if source.name in letters]
    state = stateful_operators(query.frame)
    return {
        "sources": [_source_identity(source, pipeline, clusters) for source in (*sources, *read_again)],
        "leaves": [_leaf_identity(leaf, pipeline, clusters) for leaf in leaves_of(query)],
        "state": state,
        "partitions": pipeline.partitions if state else None,
        "mode": query.mode,
        "kind": "topic" if sink is None else sink.kind,
        "path": sink.path if isinstance(sink, FileSink | SnapshotSink) else None,
        "contents": contents_of(sink, query.frame.schema),
    }


def stateful_operators(frame: DataFrame) -> list[str]:
    """The operators of a plan that keep state, by what they group and compute, without aliases."""
    text = frame._jdf.queryExecution().analyzed().treeString()
    return operators_in(text)


def operators_in(plan: str) -> list[str]:
    """The stateful operators of the text of a plan; of streams, which a tilde marks."""
    found = []
    for line in plan.splitlines():
        match = _NODE.match(line)
        if match is None or match.group(1) != "~" or match.group(2) not in _STATEFUL:
            continue
        found.append(f"{match.group(2)}{_ALIASES.sub('', _IDS.sub('', match.group(3)))}")
    return found


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Why a checkpoint cannot be used again, as the end of a sentence; None if it can.

    A checkpoint of an earlier version has no leaves: only which sources there are is known of it.
    """
    key = "leaves" if "leaves" in before and "leaves" in now else "sources"
    reason = _sources_difference(before[key], now[key])
    if reason is not None:
        return reason
    if before["state"] != now["state"]:
        return f"its state was kept by {_listed(before['state'])}, and now by {_listed(now['state'])}"
    for key, noun in (
        ("partitions", "state partitions"),
        ("mode", "mode"),
        ("kind", "kind of sink"),
        ("path", "path"),
    ):
        if before[key] != now[key]:
            return f"the {noun} was {before[key]}, and is now {now[key]}"
    return contents_difference(before.get("contents"), now.get("contents"))


def _sources_difference(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str | None:
    reason = order_difference(before, now)
    if reason is not None:
        return reason
    for old, new in zip(before, now, strict=True):
        removed = sorted(set(old["topics"]) - set(new["topics"]))
        if removed:
            return (
                f"it has the offsets of {', '.join(removed)}, which the source {new['name']} no longer reads"
            )
        there, here = old.get("cluster"), new.get("cluster")
        if there != here and None not in (there, here):
            return (
                f"it has the offsets of the cluster {there}, and the brokers of the source {new['name']} "
                f"are of the cluster {here}"
            )
        if (old["pattern"], old["path"]) != (new["pattern"], new["path"]):
            return (
                f"the source {new['name']} reads {new['pattern'] or new['path'] or 'topics by name'}, "
                f"and read {old['pattern'] or old['path'] or 'topics by name'}"
            )
    return None


def _listed(operators: list[str]) -> str:
    return "; ".join(one if len(one) <= 160 else one[:160] + "…" for one in operators) or "nothing"


def _is_table(source: Source) -> bool:
    return source.is_table if isinstance(source, TopicSource) else not source.is_stream


def _source_identity(
    source: Source, pipeline: PipelineModel, clusters: Mapping[str, str | None]
) -> dict[str, Any]:
    if isinstance(source, TopicSource):
        return {
            "name": source.name,
            "topics": sorted(source.topics),
            "pattern": source.pattern,
            "path": None,
            "cluster": clusters.get(pipeline.bootstrap_of(source)),
        }
    return {"name": source.name, "topics": [], "pattern": None, "path": source.path, "cluster": None}


def _leaf_identity(
    leaf: StreamLeaf, pipeline: PipelineModel, clusters: Mapping[str, str | None]
) -> dict[str, Any]:
    source = source_of_leaf(leaf, pipeline)
    if source is not None:
        return _source_identity(source, pipeline, clusters)
    options = leaf.options
    return {
        "name": leaf.format,
        "topics": sorted(options["subscribe"].split(",")) if "subscribe" in options else [],
        "pattern": options.get("subscribepattern"),
        "path": options.get("path"),
        "cluster": clusters.get(options.get("kafka.bootstrap.servers", "")),
    }
