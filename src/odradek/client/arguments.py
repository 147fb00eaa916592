"""Checks of the arguments of a client's methods: a wrong type is reported here, not where it would fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.common.ids import TopicPartition, check_topic_name


def topic_name(given: Any) -> str:
    """A topic's name; TypeError, or Kafka's InvalidTopic, if it is not valid."""
    if not isinstance(given, str):
        raise TypeError(f"a topic is a str, not {given!r}")
    check_topic_name(given)
    return given


def topic_names(given: Any) -> list[str]:
    """A list of topics, and not a single one by mistake."""
    if isinstance(given, str):
        raise TypeError(f"it takes a list of topics: [{given!r}]")
    if not isinstance(given, Iterable):
        raise TypeError(f"it takes a list of topics, not {given!r}")
    return [topic_name(one) for one in given]


def topic_partition(given: Any) -> TopicPartition:
    """A partition; a pair of topic and number is accepted."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"a partition is TopicPartition(topic, number), not {given!r}")
    topic, partition = given
    if type(partition) is not int or partition < 0:
        raise TypeError(f"the partition in {tuple(given)!r} is not a number from 0 on")
    return TopicPartition(topic_name(topic), partition)


def topic_partitions(given: Any) -> list[TopicPartition]:
    """A list of partitions, and not a single one by mistake."""
    if isinstance(given, TopicPartition | str) or not isinstance(given, Iterable):
        raise TypeError(f"it takes a list of TopicPartition, not {given!r}")
    return [topic_partition(one) for one in given]


def seconds(given: Any) -> float:
    """A time to wait."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"a timeout is a number of seconds, not {given!r}")
    return given


def as_offset(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    """An offset that a user names; ValueError if it is negative."""
    given = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
    if type(given.offset) is not int:
        raise TypeError(f"an offset is an int, not {given.offset!r}")
    if given.offset < 0:
        raise ValueError(f"offset {given.offset} is less than 0")
    return given


def with_metadata(
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as they are committed: a bare number has no metadata."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets are {{TopicPartition(topic, number): offset}}, not {offsets!r}")
    return {topic_partition(partition): as_offset(one) for partition, one in offsets.items()}


def as_group(given: ConsumerGroupMetadata | str) -> ConsumerGroupMetadata:
    """A consumer group, by its metadata or by its id alone."""
    if isinstance(given, ConsumerGroupMetadata):
        return given
    if not isinstance(given, str) or not given:
        raise TypeError(f"a group is consumer.group_metadata() or a group id, not {given!r}")
    return ConsumerGroupMetadata(given)
