"""What running queries report: progress by Spark, and the lag of each partition by the brokers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from odradek.client.admin.admin import Admin
from odradek.client.admin.offsets import IsolationLevel, OffsetAndTimestamp, OffsetSpec
from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.spark.pipeline.driver.sinks.topic_sinks import ROWS_OUT

Offsets = dict[str, int]
"""Next offset to read by partition, "orders-0"."""


class QueryWatch:
    """The progress of one query since the last look. Called by the driver's main thread."""

    def __init__(
        self,
        name: str,
        query: Any,
        letters: Sequence[str] = (),
        source_names: Sequence[str | None] = (),
    ) -> None:
        """`source_names`: the sources in Spark's order, None for files."""
        self.name = name
        self._letters = letters
        self._source_names = source_names
        self._query = query
        self._last: tuple[int, str] | None = None

    def look(self) -> list[dict[str, Any]]:
        """One row for each micro-batch that has ended since; also for a look at an idle source."""
        return [
            row
            for one in self._new()
            for row in (
                progress_row(self.name, one, len(self._letters), self._source_names),
                *(letters_row(name, one) for name in self._letters),
            )
        ]

    def _new(self) -> list[dict[str, Any]]:
        """What Spark has reported since, oldest first; each entry costs a call of the JVM."""
        newest = self._query._jsq.lastProgress()
        if newest is None or not self._is_new(json.loads(newest.json())):
            return []
        new: list[dict[str, Any]] = []
        for one in reversed(self._query._jsq.recentProgress()):
            progress = json.loads(one.json())
            if not self._is_new(progress):
                break
            new.append(progress)
        if new:
            self._last = (new[0]["batchId"], new[0]["timestamp"])
        return new[::-1]

    def _is_new(self, progress: Mapping[str, Any]) -> bool:
        return self._last is None or (progress["batchId"], progress["timestamp"]) > self._last


def progress_row(
    query: str, progress: Mapping[str, Any], letters: int = 0, source_names: Sequence[str | None] = ()
) -> dict[str, Any]:
    """Spark's progress as one row; the last `letters` sources are read again for dead letters."""
    sources = progress.get("sources", [])
    again = sum(one.get("numInputRows", 0) for one in sources[len(sources) - letters :])
    rows_out = _observed(progress, ROWS_OUT)
    operators = progress.get("stateOperators", [])
    return {
        "event": "progress",
        "query": query,
        "batch": progress["batchId"],
        "time": progress["timestamp"],
        "rows_in": progress["numInputRows"] - again,
        "rows_out": rows_out,
        "batch_ms": progress.get("batchDuration", 0),
        "parts_ms": dict(progress.get("durationMs", {})),
        "state_rows": sum(one.get("numRowsTotal", 0) for one in operators),
        "state_bytes": sum(one.get("memoryUsedBytes", 0) for one in operators),
        "late_rows": sum(one.get("numRowsDroppedByWatermark", 0) for one in operators),
        "watermark": progress.get("eventTime", {}).get("watermark"),
        "offsets": offsets_by_source(sources, source_names),
    }


def letters_row(name: str, progress: Mapping[str, Any]) -> dict[str, Any]:
    """The dead letters in the micro-batch of another query, as if they were a query of their own."""
    row = progress_row(name, progress)
    kept = {key: row[key] for key in ("event", "query", "batch", "time")}
    nothing = {"rows_in": 0, "batch_ms": 0, "parts_ms": {}, "state_rows": 0, "state_bytes": 0, "late_rows": 0}
    return {**kept, **nothing, "rows_out": _observed(progress, name), "watermark": None, "offsets": {}}


def _observed(progress: Mapping[str, Any], metric: str) -> int:
    return int(progress.get("observedMetrics", {}).get(metric, {}).get("rows") or 0)


def offsets_in(end_offset: Any) -> Offsets:
    """Offsets by partition from a source's end offset; nothing for sources that have other ones."""
    if isinstance(end_offset, str):
        try:
            end_offset = json.loads(end_offset)
        except ValueError:
            return {}
    if not isinstance(end_offset, Mapping):
        return {}
    found: Offsets = {}
    for topic, partitions in end_offset.items():
        if isinstance(partitions, Mapping):
            for number, offset in partitions.items():
                if isinstance(offset, int) and str(number).isdigit():
                    found[f"{topic}-{number}"] = offset
    return found


def offsets_by_source(
    sources: Sequence[Mapping[str, Any]], names: Sequence[str | None]
) -> dict[str, Offsets]:
    """The offsets of each named source of topics; one that is read again is as far as it was read last."""
    found: dict[str, Offsets] = {}
    for name, source in zip(names, sources, strict=False):
        offsets = offsets_in(source.get("endOffset"))
        if name is not None and offsets:
            before = found.get(name, {})
            found[name] = {key: min(offset, before.get(key, offset)) for key, offset in offsets.items()}
    return found


def lag_by_partition(read: Mapping[str, Offsets], lag: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The lag of all sources: "orders-0", or "east/orders-0" where several sources read such a partition."""
    readers = Counter(partition for offsets in read.values() for partition in offsets)
    return {
        f"{source}/{partition}" if readers[partition] > 1 else partition: count
        for source, counts in lag.items()
        for partition, count in counts.items()
    }


class LagWatch:
    """How far the ends of partitions are ahead of what was read. Used by one thread."""

    def __init__(self, bootstrap: str, *, reads_committed: bool) -> None:
        self._level = IsolationLevel(int(reads_committed))
        self._admin = Admin(
            bootstrap_servers=bootstrap, client_id="odradek-pipeline", default_api_timeout_ms=5000
        )

    def lag(self, read: Mapping[str, int]) -> dict[str, int]:
        """The lag of each partition; nothing while the brokers do not answer."""
        wanted = {_partition(name): int(OffsetSpec.LATEST) for name in read}
        if not wanted:
            return {}
        try:
            ends = self._admin.list_offsets(wanted, isolation_level=self._level, timeout_ms=5000)
        except (OdradekError, OSError):
            return {}
        return {
            f"{one.topic}-{one.partition}": max(0, end.offset - read[f"{one.topic}-{one.partition}"])
            for one, end in ends.items()
            if isinstance(end, OffsetAndTimestamp)
        }

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))
