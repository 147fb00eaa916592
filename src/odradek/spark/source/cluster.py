"""What the driver asks the cluster: which partitions there are, and which offsets they have."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from odradek.client.admin.admin import Admin
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.client.broker_errors import broker_error
from odradek.client.config import ClientConfig
from odradek.client.errors import BrokerError, ClientError, described
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import ConfigError, KafkaError
from odradek.common.ids import TopicPartition
from odradek.spark.errors import DataLost, ReadFailed, UnknownTopic
from odradek.spark.source.offsets import Bound, BoundKind, Offsets
from odradek.spark.source.options import SourceOptions

_PATIENCE_MS = "20000"
"""How long one question may take with all its retries, unless kafka.default.api.timeout.ms is given."""


class ClusterOffsets:
    """The cluster of one read. Owned by one reader on the driver; connects at the first question."""

    def __init__(self, options: SourceOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep
        self._made: Admin | None = None

    @property
    def _admin(self) -> Admin:
        if self._made is None:
            known = {field.name for field in dataclasses.fields(ClientConfig)}
            given = {name: text for name, text in self._options.consumer if name in known}
            settings: dict[str, Any] = {"default_api_timeout_ms": _PATIENCE_MS, **given}
            self._made = Admin(**settings)
        return self._made

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        if self._made is not None:
            self._made.close()
            self._made = None

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """All partitions of what is subscribed; UnknownTopic if a topic that is named does not exist."""
        wanted = self._options.subscription
        if wanted.pattern is not None:
            names = [topic.name for topic in self._asked(self._admin.list_topics)]
            matching = [name for name in names if re.search(wanted.pattern, name)]
            return self._partitions_of(matching, are_named=False)
        named = wanted.topics or {one.topic for one in wanted.partitions}
        found = self._partitions_of(named, are_named=True)
        if not wanted.partitions:
            return found
        missing = set(wanted.partitions) - set(found)
        if missing:
            raise UnknownTopic(f"{min(missing)} does not exist: correct the option assign")
        return list(wanted.partitions)

    def _partitions_of(self, names: Collection[str], *, are_named: bool) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for name, outcome in self._asked(self._admin.describe_topics, names).items():
            if isinstance(outcome, BrokerError):
                if outcome.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise self._failed(broker_error(outcome.error_code, f"topic {name}"))
                if are_named:
                    raise UnknownTopic(
                        f"topic {name!r} does not exist on {self._options.servers}: create it, or correct "
                        f"the option {'assign' if self._options.subscription.partitions else 'subscribe'}"
                    )
                continue  # deleted in between
            found += [TopicPartition(name, one.partition) for one in outcome.partitions]
        return sorted(found)

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The first offset of each."""
        return self._listed(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offset after the last record that may be read, of each."""
        return self._listed(dict.fromkeys(partitions, OffsetSpec.LATEST))

    def log_ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offset after the last record of each, committed or not."""
        return self._listed(dict.fromkeys(partitions, OffsetSpec.LATEST), IsolationLevel.READ_UNCOMMITTED)

    def at_times(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """The first offset whose record is as young as a time; -1 if there is none."""
        return self._listed(times)

    def resolved(self, bound: Bound, partitions: list[TopicPartition], *, is_start: bool) -> Offsets:
        """A bound as offsets of all partitions."""
        if bound.kind is BoundKind.EARLIEST:
            return self.earliest(partitions)
        if bound.kind is BoundKind.LATEST:
            return self.latest(partitions)
        side = "starting" if is_start else "ending"
        if bound.kind is BoundKind.OFFSETS:
            return self._specific(_complete(bound, partitions, f"{side}Offsets"), is_start=is_start)
        if bound.kind is BoundKind.TIME:
            times = dict.fromkeys(partitions, bound.time_ms)
        else:
            times = _complete(bound, partitions, f"{side}OffsetsByTimestamp")
        found = self.at_times(times)
        late = {partition: OffsetSpec.LATEST for partition, offset in found.items() if offset < 0}
        if late and is_start and not self._options.starts_late:
            partition = min(late)
            raise ConfigError(
                f"no record of {partition} is as young as {times[partition]} ms: set an earlier time, or "
                f"startingOffsetsByTimestampStrategy=latest to start at its end"
            )
        return found | self._listed(late)

    def _specific(self, given: Offsets, *, is_start: bool) -> Offsets:
        """Given offsets, which must be within the log, or are moved there with failOnDataLoss=false."""
        earliest, latest = self.earliest(given), self.latest(given)
        found: Offsets = {}
        for partition, offset in given.items():
            if offset == OffsetSpec.EARLIEST:
                offset = earliest[partition]
            elif offset == OffsetSpec.LATEST:
                offset = latest[partition]
            if self._options.fails_on_data_loss and not earliest[partition] <= offset <= latest[partition]:
                option = "startingOffsets" if is_start else "endingOffsets"
                raise DataLost(
                    f"{option} has {offset} for {partition}, whose log has the offsets {earliest[partition]} "
                    f"to {latest[partition]}: give one of these, or failOnDataLoss=false to skip what is gone"
                )
            found[partition] = min(max(offset, earliest[partition]), latest[partition])
        return found

    def _listed(self, wanted: Mapping[TopicPartition, int], level: IsolationLevel | None = None) -> Offsets:
        if not wanted:
            return {}
        if level is None:
            level = IsolationLevel(int(self._options.reads_committed))
        outcomes = self._asked(self._admin.list_offsets, wanted, isolation_level=level)
        found: Offsets = {}
        for partition, outcome in outcomes.items():
            if isinstance(outcome, BrokerError):
                if outcome.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise UnknownTopic(f"{partition} does not exist any more on {self._options.servers}")
                raise self._failed(broker_error(outcome.error_code, str(partition)))
            found[partition] = outcome.offset
        return found

    # Groups

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Commit offsets of a group without members; ReadFailed or a BrokerError if that failed."""
        for outcome in self._asked(self._admin.alter_group_offsets, group_id, offsets).values():
            if isinstance(outcome, BrokerError):
                raise outcome

    def _asked(self, question: Any, *arguments: Any, **keywords: Any) -> Any:
        retries = self._options.offset_retries
        while True:
            try:
                return question(*arguments, **keywords)
            except (KafkaError, ClientError) as error:
                if not retries:
                    raise self._failed(error) from None
            retries -= 1
            self._sleep(self._options.offset_retry_interval_ms / 1000)

    def _failed(self, error: BaseException) -> ReadFailed:
        return ReadFailed(f"cannot read from {self._options.servers}: {described(error)}")


def _complete(bound: Bound, partitions: list[TopicPartition], option: str) -> Offsets:
    """What a bound has for each partition, which must be exactly those that are read."""
    given = dict(bound.partitions)
    for missing in sorted(set(partitions) - given.keys()):
        raise ConfigError(f"the option {option} has nothing for {missing}: it must name all partitions")
    for unknown in sorted(given.keys() - set(partitions)):
        raise ConfigError(f"the option {option} names {unknown}, which is not read: remove it")
    return given
