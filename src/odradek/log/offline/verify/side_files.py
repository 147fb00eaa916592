"""Judges the small text files: those of a partition, and the checkpoints and marks of a log directory.

Only their exact form is accepted: a checkpoint that a lenient parser could still read was changed.
"""

from __future__ import annotations

import json
import re
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log.checkpoints import (
    decode_meta_properties,
    decode_partition_metadata,
    encode_partition_metadata,
)
from odradek.log.leader_epochs import EpochEntry, decode_epochs

_CHECKPOINT = re.compile(rb"0\n(0|[1-9]\d*)\n((?:[^\n]+\n)*)", re.ASCII)
_EPOCH_LINE = re.compile(rb"(0|[1-9]\d*) (0|[1-9]\d*)", re.ASCII)
_OFFSET_LINE = re.compile(rb"([a-zA-Z0-9._-]+) (0|[1-9]\d*) (0|[1-9]\d*)", re.ASCII)
_META_KEYS = {b"version", b"broker.id", b"node.id", b"cluster.id", b"directory.id"}
_CLEAN_SHUTDOWN_KEYS = {"version", "brokerEpoch"}

Lines = list[tuple[int, bytes]]


class Damaged(ValueError):
    """A file that does not have its form; `position` is the byte where it ceases to."""

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem)
        self.position = position


def _checkpoint_lines(content: bytes, form: re.Pattern[bytes]) -> Lines:
    """The lines of a checkpoint with their places: version 0, a count, and that many lines of a form."""
    match = _CHECKPOINT.fullmatch(content)
    if match is None:
        raise Damaged("it must have version 0, a number of lines, and these lines")
    position = match.start(2)
    lines: Lines = []
    for line in match[2].split(b"\n")[:-1]:  # not splitlines(), which takes a \r for an end as well
        if form.fullmatch(line) is None:
            raise Damaged(f"the line {line!r} has not the form of this file", position)
        lines.append((position, line))
        position += len(line) + 1
    if int(match[1]) != len(lines):
        raise Damaged(f"{len(lines)} lines where it says {int(match[1])}")
    return lines


def read_epochs(content: bytes) -> list[EpochEntry]:
    """The entries of a leader-epoch-checkpoint; Damaged if it is."""
    _checkpoint_lines(content, _EPOCH_LINE)
    try:
        return decode_epochs(content)
    except ValueError as error:
        raise Damaged(str(error)) from None


def read_offsets(content: bytes) -> list[tuple[int, TopicPartition, int]]:
    """Place, partition and offset of each line of an offset checkpoint; an empty file has none."""
    if not content:
        return []
    found = []
    seen: set[TopicPartition] = set()
    for position, line in _checkpoint_lines(content, _OFFSET_LINE):
        topic, number, offset = line.decode("ascii").split(" ")
        partition = TopicPartition(topic, int(number))
        if partition in seen:
            raise Damaged(f"{partition} is there twice", position)
        seen.add(partition)
        found.append((position, partition, int(offset)))
    return found


def read_topic_id(content: bytes) -> UUID:
    """The id in partition.metadata; Damaged if it is."""
    try:
        topic_id = decode_partition_metadata(content)
    except ValueError as error:
        raise Damaged(str(error)) from None
    if encode_partition_metadata(topic_id) != content.rstrip(b"\n"):
        raise Damaged("it is not written as its topic id would be")
    return topic_id


def check_meta_properties(content: bytes) -> None:
    """Damaged unless broker and cluster can be read from it."""
    try:
        decode_meta_properties(content)
    except ValueError as error:
        raise Damaged(str(error)) from None
    lines = [line for line in content.splitlines() if line.strip() and not line.lstrip().startswith(b"#")]
    unknown = {line.partition(b"=")[0].strip() for line in lines} - _META_KEYS
    if unknown:
        raise Damaged(f"it has a setting {min(unknown)!r}, which is not a known one")


def check_clean_shutdown(content: bytes) -> None:
    """Damaged unless it is empty, as older versions write it, or an object with version and broker epoch."""
    try:
        fields = json.loads(content) if content else {"version": 0}
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or fields.get("version") != 0 or fields.keys() - _CLEAN_SHUTDOWN_KEYS:
        raise Damaged("it must be empty, or JSON with version 0 and a broker epoch")
