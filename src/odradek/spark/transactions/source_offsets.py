"""A micro-batch in Spark's own offset log: its end offsets, so that tools for groups see the query's lag.

Where the log cannot be read, the marker is committed without them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse
from zlib import crc32

from odradek.common.ids import TopicPartition

_log = logging.getLogger("odradek.spark")


def end_offsets(entry: str | None) -> dict[TopicPartition, int]:
    """The offsets of topics in one file of the log, of all sources; Spark's and our source write the same."""
    found: dict[TopicPartition, int] = {}
    for line in (entry or "").splitlines():
        try:
            source = json.loads(line)
        except ValueError:
            continue
        if isinstance(source, dict):
            for partition, offset in _of_topics(source).items():
                found[partition] = min(offset, found.get(partition, offset))  # a topic may be read twice
    return found


def _of_topics(source: dict[str, object]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, offsets in source.items():
        if not isinstance(offsets, dict):
            return {}
        for partition, offset in offsets.items():
            if not (partition.isdecimal() and isinstance(offset, int) and offset >= 0):
                return {}
            found[TopicPartition(topic, int(partition))] = offset
    return found


def log_entry(read: Callable[[], str], batch_id: int) -> str | None:
    """What the log says about a micro-batch, or None if it cannot be read."""
    try:
        return read()
    except Exception as error:  # whatever a file system raises: the marker does without
        _log.debug("the offsets of micro-batch %d cannot be read: %s", batch_id, error)
        return None


def checksum(entry: str | None) -> int | None:
    """Another one for each entry."""
    return None if entry is None else crc32(entry.strip().encode())


def reader_of(checkpoint: str | None, batch_id: int) -> Callable[[], str]:
    """Reads the entry of a micro-batch by the path of the checkpoint, in a process without a JVM."""

    def read() -> str:
        if checkpoint is None:
            raise FileNotFoundError("the path of the checkpoint is not known")
        url = urlparse(checkpoint)
        if url.scheme in ("", "file"):
            path = unquote(url.path) if url.scheme else checkpoint
            return (Path(path) / "offsets" / str(batch_id)).read_text()
        from pyarrow import fs  # noqa: PLC0415

        system, path = fs.FileSystem.from_uri(f"{checkpoint}/offsets/{batch_id}")
        with system.open_input_stream(path) as stream:
            return str(stream.readall().decode())

    return read
