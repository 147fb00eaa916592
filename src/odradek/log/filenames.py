"""The names of the files and directories of a log.

    <topic>-<partition>                      a partition
    <topic>-<partition>.<32 hex>-delete      a partition of a deleted topic, waiting to be removed
    <topic>-<partition>.<32 hex>-future      a copy under way to another directory
    <topic>-<partition>.<32 hex>-stray       a partition that is not assigned to this broker: never deleted

Inside a partition, NNNNNNNNNNNNNNNNNNNN is the base offset of a segment in 20 digits:

    N.log  N.index  N.timeindex  N.txnindex  one segment
    N.snapshot                               producer state just before offset N
    any of them + .deleted                   waiting to be removed
    any of them + .cleaned                   compaction in progress; discarded after a crash
    any of them + .swap                      compaction done, not renamed yet
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from odradek.common.ids import TopicPartition, topic_name_problem

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_KINDS = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

MAX_FILENAME_LENGTH = 255
MAX_OFFSET = 2**63 - 1

_SEGMENT_FILE = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?\Z", re.ASCII
)
_DIRECTORY = re.compile(r"(.+)-(0|[1-9]\d{0,9})(?:\.([0-9a-f]{32})-(delete|future|stray))?\Z", re.ASCII)


class SegmentFile(NamedTuple):
    """The parsed name of a file in a partition directory."""

    base_offset: int
    kind: str
    state: str  # "", ".deleted", ".cleaned" or ".swap"


class DirectoryState(Enum):
    """The state of a partition directory, by its name."""

    LIVE = ""
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


class DirectoryName(NamedTuple):
    """The parsed name of a partition directory."""

    partition: TopicPartition
    state: DirectoryState


def segment_filename(base_offset: int, kind: str, state: str = "") -> str:
    """`00000000000000000042.log` and the like."""
    return f"{base_offset:020d}{kind}{state}"


def parse_segment_filename(name: str) -> SegmentFile | None:
    """None for a name that is not of a segment; such a file is ignored."""
    match = _SEGMENT_FILE.match(name)
    if match is None or int(match[1]) > MAX_OFFSET:
        return None
    return SegmentFile(int(match[1]), match[2], match[3] or "")


def parse_directory_name(name: str) -> DirectoryName | None:
    """None for a name that is not of a partition; such a directory is ignored."""
    match = _DIRECTORY.match(name)
    if match is None or int(match[2]) > 2**31 - 1 or topic_name_problem(match[1]) is not None:
        return None
    return DirectoryName(TopicPartition(match[1], int(match[2])), DirectoryState(match[4] or ""))


def marked_directory_name(partition: TopicPartition, unique_hex: str, state: DirectoryState) -> str:
    """The name of a directory in that state; a long topic is shortened so that the name stays legal."""
    suffix = f"-{partition.partition}.{unique_hex}-{state.value}"
    return partition.topic[: MAX_FILENAME_LENGTH - len(suffix)] + suffix
