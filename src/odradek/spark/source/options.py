"""The options of the source, with the names and meanings of Spark's own Kafka source. No I/O.

option                                  meaning
kafka.*                                 a setting of the consumer in Kafka's spelling; kafka.bootstrap.servers
                                        must be there; kafka.group.id: offsets are committed for this group
                                        after each micro-batch, so that its lag can be watched
subscribe                               topics, separated by commas
subscribePattern                        a regular expression that is found in the name of a topic
assign                                  {"topic": [0, 1]}
startingTimestamp, endingTimestamp      milliseconds since 1970, for all partitions
startingOffsetsByTimestamp, ending…     {"topic": {"0": 1700000000000}}
startingOffsets, endingOffsets          earliest, latest, or {"topic": {"0": 23, "1": -2}}: -2 is earliest,
                                        -1 latest
startingOffsetsByTimestampStrategy      error, latest: where to start if no record is that young
maxOffsetsPerTrigger                    the most offsets of a micro-batch
minOffsetsPerTrigger, maxTriggerDelay   a micro-batch waits for so many offsets, but not longer than this
minPartitions, maxRecordsPerPartition   how many tasks a read has at least; how many offsets a task at most
failOnDataLoss                          whether records that are gone end the query (default: true)
includeHeaders                          whether there is a column headers (default: false)
kafkaConsumer.pollTimeoutMs             how long a task waits for records that must be there (default: 120000)

fetchOffset.numRetries                  how often a failed question for offsets is asked again (default: 0)
fetchOffset.retryIntervalMs             how long to wait before it is asked again (default: 10)

An end is for batches only; the limits per trigger for streams only. groupIdPrefix and
useDeprecatedOffsetFetching have no effect, and say so in the log: nothing is read as a member of a group, and
there is one way to ask for offsets.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odradek.client.consumer.config import ConsumerConfig, consumer_config
from odradek.client.producer.config import ProducerConfig
from odradek.common.errors import ConfigError
from odradek.common.ids import TopicPartition
from odradek.spark.kafka_settings import boolean, check_names, kafka_settings, number
from odradek.spark.source.offsets import Bound, BoundKind

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_BOUNDS = ("Timestamp", "OffsetsByTimestamp", "Offsets")
_OWN = (
    *_SUBSCRIPTIONS,
    *(f"{side}{bound}" for side in ("starting", "ending") for bound in _BOUNDS),
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "useDeprecatedOffsetFetching",
)
_REFUSED = {
    "key.deserializer": "key is a column of bytes: cast it",
    "value.deserializer": "value is a column of bytes: cast it",
    "auto.offset.reset": "use the option startingOffsets",
    "enable.auto.commit": "with kafka.group.id, offsets are committed after each micro-batch",
    "interceptor.classes": "work on the columns of the DataFrame",
}
_OF_GROUPS = frozenset(
    {
        "group_id",
        "group_instance_id",
        "group_protocol",
        "group_remote_assignor",
        "partition_assignment_strategy",
        "session_timeout_ms",
        "heartbeat_interval_ms",
        "max_poll_interval_ms",
        "auto_commit_interval_ms",
    }
)
_WITHOUT_EFFECT = {
    "groupIdPrefix": "nothing is read as a member of a group; kafka.group.id shows the lag of a group",
    "useDeprecatedOffsetFetching": "offsets are always asked for without a consumer",
}
_DEFAULT_POLL_TIMEOUT_MS = 120_000
_DEFAULT_RETRY_INTERVAL_MS = 10
_DEFAULT_TRIGGER_DELAY_MS = 15 * 60 * 1000
_DURATION_UNITS_MS = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_JSON_OFFSETS = '{"topic": {"0": 23, "1": -2}}'


_log = logging.getLogger("odradek.spark")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What to read: exactly one of the three is given."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def includes(self, partition: TopicPartition) -> bool:
        """Whether a partition would be read, if it existed."""
        if self.pattern is not None:
            return re.search(self.pattern, partition.topic) is not None
        return partition.topic in self.topics or partition in self.partitions

    def __str__(self) -> str:
        """The option that says it, as a user may have written it."""
        if self.pattern is not None:
            return f"subscribePattern={self.pattern}"
        if self.topics:
            return f"subscribe={','.join(self.topics)}"
        return f"assign={','.join(map(str, self.partitions))}"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a source. It is pickled and sent to the tasks."""

    consumer: tuple[tuple[str, str], ...]  # keyword and text of each setting, sorted: also a consumer's key
    subscription: Subscription
    start: Bound
    end: Bound
    group_id: str | None
    starts_late: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int
    max_records_per_partition: int | None
    fails_on_data_loss: bool
    includes_headers: bool
    poll_timeout_ms: int
    offset_retries: int = 0
    offset_retry_interval_ms: int = _DEFAULT_RETRY_INTERVAL_MS

    @property
    def reads_committed(self) -> bool:
        """Whether records of aborted and open transactions are left out."""
        return dict(self.consumer).get("isolation_level") == "read_committed"

    @property
    def servers(self) -> str:
        """The brokers, for errors."""
        return dict(self.consumer)["bootstrap_servers"]


def source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """The options of one read; ConfigError names what is wrong and what to do."""
    given = {name.lower(): value for name, value in options.items()}
    check_names(given, {name.lower(): name for name in _OWN}, "reading")
    for name, reason in _WITHOUT_EFFECT.items():
        if name.lower() in given:
            _log.warning("the option %s has no effect: %s", name, reason)
    settings = kafka_settings(given, ConsumerConfig, ProducerConfig, _REFUSED, consumer_config)
    consumer = {name: text for name, text in settings.items() if name not in _OF_GROUPS}
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(
            f"the option startingOffsetsByTimestampStrategy is {strategy!r}; it must be error or latest"
        )
    most, least = _number(given, "maxOffsetsPerTrigger", 1), _number(given, "minOffsetsPerTrigger", 1)
    if most is not None and least is not None and most < least:
        raise ConfigError(
            f"maxOffsetsPerTrigger={most} is less than minOffsetsPerTrigger={least}: it must not be"
        )
    interval_ms = _number(given, "fetchOffset.retryIntervalMs", 0)
    return SourceOptions(
        consumer=tuple(sorted(consumer.items())),
        subscription=_subscription(given),
        start=_start(given, is_stream),
        end=_end(given, is_stream),
        group_id=settings.get("group_id"),
        starts_late=strategy == "latest",
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=_duration_ms("maxTriggerDelay", given.get("maxtriggerdelay")),
        min_partitions=_number(given, "minPartitions", 1) or 0,
        max_records_per_partition=_number(given, "maxRecordsPerPartition", 1),
        fails_on_data_loss=boolean("failOnDataLoss", given.get("failondataloss", "true")),
        includes_headers=boolean("includeHeaders", given.get("includeheaders", "false")),
        poll_timeout_ms=_number(given, "kafkaConsumer.pollTimeoutMs", 1) or _DEFAULT_POLL_TIMEOUT_MS,
        offset_retries=_number(given, "fetchOffset.numRetries", 0) or 0,
        offset_retry_interval_ms=_DEFAULT_RETRY_INTERVAL_MS if interval_ms is None else interval_ms,
    )


def includes_headers(options: Mapping[str, str]) -> bool:
    """Whether the schema has the column headers."""
    given = {name.lower(): value for name, value in options.items()}
    return boolean("includeHeaders", given.get("includeheaders", "false"))


# What to read


def _subscription(given: Mapping[str, str]) -> Subscription:
    named = [name for name in _SUBSCRIPTIONS if name.lower() in given]
    if len(named) != 1:
        found = f"there are {' and '.join(named)}" if named else "there is none"
        raise ConfigError(f"give one of the options subscribe, subscribePattern, assign; {found}")
    text = given[named[0].lower()]
    if named[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern {text!r} is no regular expression: {error}") from None
        return Subscription(pattern=text)
    if named[0] == "assign":
        return Subscription(partitions=_assigned(text))
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise ConfigError("the option subscribe is empty: give topics, separated by commas")
    return Subscription(topics=topics)


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    wrong = ConfigError(f'the option assign is {text!r}; it must be like {{"topic": [0, 1]}}')
    try:
        found = json.loads(text)
        partitions = [TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers]
    except (ValueError, AttributeError, TypeError):
        raise wrong from None
    if not partitions or any(type(one.partition) is not int or one.partition < 0 for one in partitions):
        raise wrong
    return tuple(sorted(set(partitions)))


# Where to begin and to end


def _start(given: Mapping[str, str], is_stream: bool) -> Bound:
    start = _bound(given, "starting") or Bound(BoundKind.LATEST if is_stream else BoundKind.EARLIEST)
    if not is_stream and (start.kind is BoundKind.LATEST or -1 in dict(start.partitions).values()):
        raise ConfigError(
            "a batch cannot start at latest (-1), because it would have no rows: "
            "set startingOffsets to earliest or to offsets"
        )
    return start


def _end(given: Mapping[str, str], is_stream: bool) -> Bound:
    if is_stream:
        for name in _BOUNDS:
            if f"ending{name}".lower() in given:
                raise ConfigError(
                    f"the option ending{name} is for batches, a stream has no end: "
                    f"remove it, or use spark.read"
                )
    end = _bound(given, "ending") or Bound(BoundKind.LATEST)
    if end.kind is BoundKind.EARLIEST or -2 in dict(end.partitions).values():
        raise ConfigError(
            "a batch cannot end at earliest (-2), because it would have no rows: "
            "set endingOffsets to latest or to offsets"
        )
    return end


def _bound(given: Mapping[str, str], side: str) -> Bound | None:
    """A time for all partitions wins over times, and times over offsets, as in Spark's own source."""
    names = [f"{side}{name}" for name in _BOUNDS]
    texts = [given.get(name.lower()) for name in names]
    if texts[0] is not None:
        return Bound(BoundKind.TIME, time_ms=number(names[0], texts[0]))
    if texts[1] is not None:
        return Bound(BoundKind.TIMES, partitions=_by_partition(names[1], texts[1], least=0))
    if texts[2] is None:
        return None
    if texts[2].strip().lower() in ("earliest", "latest"):
        return Bound(BoundKind(texts[2].strip().lower()))
    return Bound(BoundKind.OFFSETS, partitions=_by_partition(names[2], texts[2], least=-2))


def _by_partition(name: str, text: str, least: int) -> tuple[tuple[TopicPartition, int], ...]:
    expected = "it must be earliest, latest, or like" if least < 0 else "it must be like"
    wrong = ConfigError(f"the option {name} is {text!r}; {expected} {_JSON_OFFSETS}")
    try:
        found: dict[str, dict[str, Any]] = json.loads(text)
        rows = {
            TopicPartition(topic, int(index)): entry
            for topic, entries in found.items()
            for index, entry in entries.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise wrong from None
    if not rows or any(type(entry) is not int or entry < least for entry in rows.values()):
        raise wrong
    return tuple(sorted(rows.items()))


def _number(given: Mapping[str, str], name: str, least: int) -> int | None:
    text = given.get(name.lower())
    return None if text is None else number(name, text, least)


def _duration_ms(name: str, text: str | None) -> int:
    if text is None:
        return _DEFAULT_TRIGGER_DELAY_MS
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in _DURATION_UNITS_MS:
        raise ConfigError(f"the option {name} is {text!r}; it must be a duration such as 30s or 15m")
    return int(found[1]) * _DURATION_UNITS_MS[found[2]]
