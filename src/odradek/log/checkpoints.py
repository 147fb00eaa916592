"""The small text files beside the logs. Pure: text in, values out; the caller reads and writes the files.

Offset checkpoints (recovery point, high watermark, log start, cleaner), one file per log directory:

    0                        version
    2                        number of lines that follow
    orders 0 1200            topic, partition, offset
    orders 1 1187

`partition.metadata`, one per partition:      `meta.properties`, one per log directory:

    version: 0                                    version=0
    topic_id: pONhCLIzS7yZRRkfEM-hbA              broker.id=1
                                                  cluster.id=AAAAAAAAAAAAAAAAAAAAAQ
                                                  directory.id=N4BIgWlalFUUgszB7d0JWA

`.kafka_cleanshutdown`, one per log directory, exists only after a clean shutdown, until the next start:

    {"version":0,"brokerEpoch":12}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.common.ids import TopicPartition, uuid_from_text, uuid_to_text

OFFSETS_VERSION = 0
METADATA_VERSION = 0


class MetaProperties(NamedTuple):
    """The owner of a log directory. KRaft brokers write version 1, where the broker id is called node.id."""

    broker_id: int
    cluster_id: str
    directory_id: UUID | None = None
    version: int = 0


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint."""
    return encode_offset_lines(
        [offset_line(partition, offset) for partition, offset in sorted(offsets.items())]
    )


def offset_line(partition: TopicPartition, offset: int) -> str:
    """The line of one partition in an offset checkpoint."""
    return f"{partition.topic} {partition.partition} {offset}"


def encode_offset_lines(lines: list[str]) -> bytes:
    """An offset checkpoint with these lines, in any order."""
    return ("\n".join([str(OFFSETS_VERSION), str(len(lines)), *lines]) + "\n").encode("ascii")


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint, none in an empty file as Kafka creates it; ValueError if damaged."""
    if not content:
        return {}
    version, count, *lines = content.decode("ascii").splitlines()
    if int(version) != OFFSETS_VERSION or int(count) != len(lines):
        raise ValueError(f"{len(lines)} lines of {count}, version {version}")
    offsets: dict[TopicPartition, int] = {}
    for line in lines:
        topic, partition, offset = line.split(" ")
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    if any(offset < 0 for offset in offsets.values()):
        raise ValueError("a negative offset")
    return offsets


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """`partition.metadata`; without a newline at the end, as Kafka writes it."""
    return f"version: {METADATA_VERSION}\ntopic_id: {uuid_to_text(topic_id)}".encode("ascii")


def decode_partition_metadata(content: bytes) -> UUID:
    """The topic's id; ValueError if the file is damaged."""
    fields = dict(line.split(": ", 1) for line in content.decode("ascii").splitlines() if line)
    if set(fields) != {"version", "topic_id"} or int(fields["version"]) != METADATA_VERSION:
        raise ValueError(f"fields {sorted(fields)}")
    return uuid_from_text(fields["topic_id"].strip())


def encode_meta_properties(properties: MetaProperties) -> bytes:
    """`meta.properties` in the format of a ZooKeeper-era broker."""
    lines = ["version=0", f"broker.id={properties.broker_id}", f"cluster.id={properties.cluster_id}"]
    if properties.directory_id is not None:
        lines.append(f"directory.id={uuid_to_text(properties.directory_id)}")
    return ("\n".join(lines) + "\n").encode("ascii")


def decode_meta_properties(content: bytes) -> MetaProperties:
    """The owner of the directory, from either version of the file; ValueError if it is damaged."""
    fields: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            key, separator, value = line.strip().partition("=")
            if not separator:
                raise ValueError(f"line {number} is not of the form key=value")
            fields[key] = value
    version = int(fields.get("version", "0"))
    if version not in (0, 1):
        raise ValueError(f"version {version} is unknown")
    broker_id = fields.get("broker.id" if version == 0 else "node.id")
    cluster_id = fields.get("cluster.id")
    if broker_id is None or cluster_id is None:
        raise ValueError("broker id or cluster id is missing")
    directory_id = uuid_from_text(fields["directory.id"]) if "directory.id" in fields else None
    return MetaProperties(int(broker_id), cluster_id, directory_id, version)


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """`.kafka_cleanshutdown`."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode("ascii")
