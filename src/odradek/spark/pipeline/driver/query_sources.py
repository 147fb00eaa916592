"""Which source of the pipeline each source of a running query is.

Spark reports the sources of a query in the order of its plan, and names them by their topics at most, which
two clusters may both have. The plan has the options that each was made with. It is not part of the public
interface, so tests/spark/pipeline/driver/test_query_sources.py guards it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError

from odradek.spark.pipeline.definition.model import PipelineModel, TopicSource
from odradek.spark.pipeline.driver.sources import topic_options


def source_names(query: Any, pipeline: PipelineModel) -> list[str | None]:
    """The name of each source in the order of Spark's progress, None for files. For a query with progress.

    Empty where Spark's plan is not as expected: the lag is not shown then.
    """
    topics = [source for source in pipeline.sources if isinstance(source, TopicSource)]
    known = {source.name: topic_options(pipeline, source) for source in topics}
    try:
        return [source_with(options, known) for options in _options_of(query)]
    except (Py4JError, AttributeError, TypeError):
        return []


def source_with(options: Mapping[str, str], known: Mapping[str, Mapping[str, str]]) -> str | None:
    """The source that was made with these options, to which Spark may have added some."""
    fitting = (name for name, wanted in known.items() if wanted.items() <= options.items())
    return max(fitting, key=lambda name: len(known[name]), default=None)


def _options_of(query: Any) -> Iterable[Mapping[str, str]]:
    leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()
    streams: list[Any] = []
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        kind = leaf.getClass().getSimpleName()
        is_table = kind == "StreamingDataSourceV2ScanRelation"
        if not is_table and kind != "StreamingExecutionRelation":
            continue  # read once
        stream = leaf.stream() if is_table else leaf.source()
        if stream not in streams:  # one that is read twice is reported once
            streams.append(stream)
            yield dict(leaf.relation().options().asCaseSensitiveMap()) if is_table else {}
