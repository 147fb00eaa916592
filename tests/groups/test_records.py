"""The records of `__consumer_offsets`: read what Kafka wrote, write what Kafka would have written."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from odradek.common.clock import SystemClock
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.result import CoordinatorRecord
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.groups.classic_group import Group, GroupState
from odradek.groups.consumer import consumer_records
from odradek.groups.consumer.consumer_group import ConsumerGroup
from odradek.groups.consumer.consumer_records import CONSUMER_KEYS, Change, apply
from odradek.groups.records import CODEC, committed_of, group_metadata, group_of, offset_commit
from odradek.groups.settings import GroupSettings
from odradek.groups.state import GroupsState
from odradek.protocol.messages import GroupMetadataKey, OffsetCommitKey
from odradek.records.batch import iterate_headers
from odradek.records.record import read_records

KAFKAS = Path(__file__).parents[1] / "data" / "coordinators" / "__consumer_offsets-0"


def kafkas_log() -> bytes:
    (path,) = KAFKAS.glob("*.log")
    return path.read_bytes()


class KafkasTopic:
    """A port over a log that Kafka wrote; nothing can be appended."""

    def end_offset(self, partition: int) -> int:
        return 1

    def is_committed(self, partition: int, offset: int) -> bool:
        return True

    async def read(self, partition: int, end_offset: int) -> AsyncIterator[bytes]:
        yield kafkas_log()


class NoTimer:
    def call_later(self, delay_ms: int, callback: object) -> NoTimer:
        return self

    def cancel(self) -> None:
        return None


def test_a_log_that_kafka_wrote_is_replayed():
    async def load() -> GroupsState:
        topic, clock = KafkasTopic(), SystemClock()
        runtime = CoordinatorRuntime(
            topic, NoTimer(), clock, lambda _: GroupsState(GroupSettings), commit_timeout_ms=1
        )
        runtime.lead(0, 0)
        while True:
            with contextlib.suppress(KafkaError):
                return await runtime.read(0, lambda state, _: state)
            await asyncio.sleep(0)

    state = asyncio.run(load())
    classic = state.groups["classic"]
    assert isinstance(classic, Group)
    assert classic.state is GroupState.STABLE
    assert [member.group_instance_id for member in classic.members.values()] == ["static-1"]
    assert state.offsets.of("classic")[TopicPartition("orders", 2)].offset == 1
    assert "alone" not in state.groups
    committed = state.offsets.of("in-transactions")
    assert [offset.offset for offset in committed.values()] == [0], "committed, then aborted"


def test_classic_groups_and_offsets_are_written_byte_for_byte_as_kafka_wrote_them():
    compared = 0
    for position, header in iterate_headers(kafkas_log()):
        if header.is_control:
            continue
        for record in read_records(kafkas_log(), position, max_bytes=1 << 20):
            decoded = CODEC.decode(record.key or b"", record.value)
            if decoded is None or decoded.value is None:
                continue
            key, value = decoded
            if isinstance(key, GroupMetadataKey):
                ours = group_metadata(group_of(key.group, value))
            elif isinstance(key, OffsetCommitKey):
                partition = TopicPartition(key.topic, key.partition)
                ours = offset_commit(key.group, partition, committed_of(value))
            else:
                continue
            assert ours == CoordinatorRecord(record.key, record.value)
            compared += 1
    assert compared > 8


def test_groups_of_the_new_protocol_are_written_byte_for_byte_as_kafka_wrote_them():
    groups: dict[str, ConsumerGroup] = {}
    compared: Counter[str] = Counter()
    for position, header in iterate_headers(kafkas_log()):
        records = [] if header.is_control else read_records(kafkas_log(), position, max_bytes=1 << 20)
        for record in records:
            decoded = CODEC.decode(record.key or b"", record.value)
            if decoded is None or decoded.value is None or not isinstance(decoded.key, CONSUMER_KEYS):
                continue
            key: Any = decoded.key
            group = apply(groups.get(key.group_id, ConsumerGroup(key.group_id)), key, decoded.value)
            assert group is not None
            groups[key.group_id] = group
            assert written_again(group, key).record() == CoordinatorRecord(record.key, record.value)
            compared[type(key).__name__] += 1
    assert len(compared) == 6, compared


def written_again(group: ConsumerGroup, key: Any) -> Change:
    """The record of this key, made from what the group knows."""
    group_id = group.group_id
    match type(key).__name__:
        case "ConsumerGroupMetadataKey":
            return consumer_records.group_epoch(group_id, group.group_epoch, group.metadata_hash)
        case "ConsumerGroupMemberMetadataKey":
            return consumer_records.member_metadata(group_id, group.members[key.member_id])
        case "ConsumerGroupTargetAssignmentMetadataKey":
            timestamp_ms = group.assignment_timestamp_ms
            return consumer_records.target_epoch(group_id, group.assignment_epoch, timestamp_ms)
        case "ConsumerGroupTargetAssignmentMemberKey":
            return consumer_records.target_member(group_id, key.member_id, group.targets[key.member_id])
        case "ConsumerGroupCurrentMemberAssignmentKey":
            return consumer_records.current_assignment(group_id, group.members[key.member_id])
        case _:
            regex = key.regular_expression
            return consumer_records.resolved_regex(group_id, regex, group.regexes[regex])
