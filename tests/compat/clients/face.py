"""What a test asks of a client, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PATIENCE_SECONDS = 30
CREATE_TIME, LOG_APPEND_TIME = 0, 1


@dataclass(frozen=True)
class Record:
    """A record to be sent."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 1_700_000_000_000


@dataclass(frozen=True)
class Received:
    """A record as it came, with what the broker added."""

    offset: int
    record: Record
    timestamp_type: int = CREATE_TIME


def as_received(records: Sequence[Record], start: int = 0) -> list[Received]:
    """How records come back that were the first ones of a topic."""
    return [Received(start + index, record) for index, record in enumerate(records)]


def without_time(received: Sequence[Received]) -> list[Record]:
    return [replace(one.record, timestamp_ms=0) for one in received]


class TooLarge(Exception):
    """The broker took a batch for too large, as this client reports it."""


class Client(Protocol):
    """One client library at one broker."""

    name: str

    def produce(self, topic: str, records: Sequence[Record], *, codec: str = "none") -> list[int]:
        """The offsets that partition 0 gave; TooLarge if the broker said so."""

    def consume(self, topic: str, count: int, *, start: int | None = 0) -> list[Received]:
        """So many records of partition 0, from an offset or (None) from the earliest."""

    def first_and_next_offset(self, topic: str) -> tuple[int, int]:
        """Where partition 0 begins and ends."""

    def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        """The first offset of partition 0 that is not older."""

    def create_topic(self, topic: str, *, partitions: int = 1, **configs: str) -> None:
        """Settings in Python case."""

    def topics(self) -> set[str]: ...

    def partition_count(self, topic: str) -> int: ...

    def add_partitions(self, topic: str, total: int) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def delete_records(self, topic: str, before_offset: int) -> int:
        """Returns where partition 0 begins now."""

    def topic_configs(self, topic: str) -> dict[str, str]: ...

    def alter_topic_config(self, topic: str, key: str, value: str) -> None: ...

    def broker_ids(self) -> list[int]: ...

    def close(self) -> None: ...


def kafka_names(configs: dict[str, Any]) -> dict[str, str]:
    return {key.replace("_", "."): str(value) for key, value in configs.items()}
