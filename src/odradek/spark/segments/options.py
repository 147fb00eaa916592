"""The options of the segment source. No I/O.

option                 meaning
path                   a log directory, of ours or of Kafka's, or the directory of one partition; it must be
                       mounted there on every executor
subscribe              topics, separated by commas (default: all but those whose names begin with __)
subscribePattern       a regular expression that is found in the name of a topic
isolationLevel         read_committed (default): records of aborted and open transactions are left out, by the
                       files alone; read_uncommitted
includeHeaders         whether there is a column headers (default: false)
maxBytesPerPartition   the size of a task: a larger segment is split (default: 134217728)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odradek.common.errors import ConfigError
from odradek.log.offline.scan_parts import DEFAULT_PART_BYTES
from odradek.spark.kafka_settings import boolean, check_names, number

_OWN = ("path", "subscribe", "subscribePattern", "isolationLevel", "includeHeaders", "maxBytesPerPartition")
_INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """The options of a segment source."""

    path: str
    topics: frozenset[str]
    pattern: str | None
    reads_committed: bool
    includes_headers: bool
    part_bytes: int

    def has(self, topic: str) -> bool:
        """Whether a topic is read."""
        if self.topics:
            return topic in self.topics
        if self.pattern is not None:
            return re.search(self.pattern, topic) is not None
        return not topic.startswith(_INTERNAL)


def segment_options(options: Mapping[str, str]) -> SegmentOptions:
    """The options of one read; ConfigError names what is wrong and what to do."""
    given = {name.lower(): value for name, value in options.items()}
    check_names(given, {name.lower(): name for name in _OWN}, "reading")
    if not given.get("path"):
        raise ConfigError('the path is missing: load("/path/of/log.dirs"), or the directory of one partition')
    pattern = given.get("subscribepattern")
    if pattern is not None:
        if "subscribe" in given:
            raise ConfigError("give one of the options subscribe, subscribePattern, not both")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"subscribePattern {pattern!r} is no regular expression: {error}") from None
    level = given.get("isolationlevel", "read_committed")
    if level not in ("read_committed", "read_uncommitted"):
        raise ConfigError(
            f"the option isolationLevel is {level!r}; it must be read_committed or read_uncommitted"
        )
    part_bytes = given.get("maxbytesperpartition")
    return SegmentOptions(
        path=given["path"],
        topics=frozenset(name.strip() for name in given.get("subscribe", "").split(",") if name.strip()),
        pattern=pattern,
        reads_committed=level == "read_committed",
        includes_headers=boolean("includeHeaders", given.get("includeheaders", "false")),
        part_bytes=DEFAULT_PART_BYTES
        if part_bytes is None
        else number("maxBytesPerPartition", part_bytes, 1),
    )
