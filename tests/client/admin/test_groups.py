"""Groups and their offsets, as administrators see them; on our broker and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from client.eventually import eventually
from odradek import Consumer, Producer, TopicPartition
from odradek.client.admin.groups import GroupDescription, GroupState, GroupType
from odradek.client.broker_errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from odradek.client.committed_offsets import OffsetAndMetadata


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


@contextmanager
def member(admin, group: str, topic: str, partitions: int, **settings: Any) -> Iterator[Consumer[Any, Any]]:
    """A consumer that has all partitions of a topic."""
    servers = list(admin.config.bootstrap_servers)
    with Consumer(
        bootstrap_servers=servers,
        group_id=group,
        client_id="reader",
        auto_offset_reset="earliest",
        **settings,
    ) as consumer:
        consumer.subscribe([topic])

        def has_all() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == partitions

        eventually(has_all)
        yield consumer


def test_a_group_that_only_has_offsets_from_its_making_to_its_end(admin, topic, group):
    admin.make(topic, num_partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    made = admin.alter_group_offsets(group, {first: 3, second: OffsetAndMetadata(5, "noted")})
    assert made == {first: None, second: None}
    offsets = admin.list_group_offsets(group)
    assert {partition: one[:2] for partition, one in offsets.items()} == {
        first: (3, ""),
        second: (5, "noted"),
    }
    assert set(admin.list_group_offsets(group, [second])) == {second}
    (listed,) = [one for one in admin.list_groups() if one.group_id == group]
    assert listed.is_simple_consumer_group
    assert (listed.group_type, listed.state) == (GroupType.CLASSIC, GroupState.EMPTY)
    described = admin.describe_group(group)
    assert (described.state, described.members) == (GroupState.EMPTY, ())

    assert admin.delete_group_offsets(group, [first]) == {first: None}
    assert set(admin.list_group_offsets(group)) == {second}
    admin.delete_group(group)
    assert admin.list_group_offsets(group) == {}
    with pytest.raises(GroupIdNotFound):
        admin.describe_group(group)
    with pytest.raises(GroupIdNotFound):
        admin.delete_group(group)


def test_a_classic_group_is_described_with_its_members(admin, topic, group):
    admin.make(topic, num_partitions=2)
    with member(admin, group, topic, 2, group_instance_id="one"):
        described = admin.describe_group(group)
        with pytest.raises(NonEmptyGroup):
            admin.delete_group(group)
        (altered,) = admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0}).values()
        assert isinstance(altered, UnknownMemberId)
        (deleted,) = admin.delete_group_offsets(group, [TopicPartition(topic, 0)]).values()
        assert isinstance(deleted, GroupSubscribedToTopic)

    assert (described.group_type, described.state) == (GroupType.CLASSIC, GroupState.STABLE)
    assert (described.protocol_type, described.assignor) == ("consumer", "range")
    assert described.coordinator.port == int(admin.config.bootstrap_servers[0].rpartition(":")[2])
    assert described.group_epoch is None
    (only,) = described.members
    assert (only.client_id, only.group_instance_id) == ("reader", "one")
    assert only.host.startswith("/")
    assert only.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert only.target_assignment is None
    assert only.member_id


def test_a_group_of_the_new_protocol_is_described_with_its_epochs(admin, topic, group):
    admin.make(topic, num_partitions=2)
    with member(admin, group, topic, 2, group_protocol="consumer"):
        eventually(lambda: admin.describe_group(group).state is GroupState.STABLE)
        described = admin.describe_group(group)
        with pytest.raises(NonEmptyGroup):
            admin.delete_group(group)

    assert (described.group_type, described.assignor) == (GroupType.CONSUMER, "uniform")
    assert described.group_epoch is not None
    assert described.group_epoch == described.target_assignment_epoch
    (only,) = described.members
    assert only.assignment == only.target_assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert only.member_epoch == described.group_epoch
    admin.delete_group(group)
    with pytest.raises(GroupIdNotFound):
        admin.describe_group(group)


def test_groups_are_listed_by_state_and_by_type(admin, topic, group):
    admin.make(topic)
    admin.alter_group_offsets(group + "-simple", {TopicPartition(topic, 0): 0})
    with member(admin, group, topic, 1, group_protocol="consumer"):
        eventually(lambda: admin.describe_group(group).state is GroupState.STABLE)

        def names(**filters: Any) -> set[str]:
            return {one.group_id for one in admin.list_groups(**filters)} & {group, group + "-simple"}

        assert names() == {group, group + "-simple"}
        assert names(states=[GroupState.STABLE]) == {group}
        assert names(states=["empty"]) == {group + "-simple"}
        assert names(types=["consumer"]) == {group}
        assert names(types=[GroupType.CLASSIC]) == {group + "-simple"}
        assert names(states=["Stable", "Empty"], types=["Classic", "Consumer"]) == {group, group + "-simple"}
        assert names(states=["Empty"], types=["Consumer"]) == set()
    with pytest.raises(ValueError, match="'sleepy' is none of PreparingRebalance"):
        admin.list_groups(states=["sleepy"])


def test_what_is_not_there_is_an_error_among_the_results(admin, topic, group):
    admin.make(topic)
    here, gone = TopicPartition(topic, 0), TopicPartition(topic, 7)
    altered = admin.alter_group_offsets(group, {here: 1, gone: 1})
    assert altered[here] is None
    assert isinstance(altered[gone], UnknownTopicOrPartition)
    described = admin.describe_groups([group, "nobody"])
    assert isinstance(described[group], GroupDescription)
    assert isinstance(described["nobody"], GroupIdNotFound)
    assert isinstance(admin.delete_groups(["nobody"])["nobody"], GroupIdNotFound)
    with pytest.raises(GroupIdNotFound):
        admin.delete_group_offsets("nobody", [here])
    assert admin.list_group_offsets("nobody") == {}
    assert admin.alter_group_offsets(group, {}) == {}


def test_a_group_continues_from_altered_offsets(admin, topic, group):
    admin.make(topic)
    with Producer(bootstrap_servers=list(admin.config.bootstrap_servers)) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    admin.alter_group_offsets(group, {TopicPartition(topic, 0): 7})
    values: list[bytes] = []
    with Consumer(bootstrap_servers=list(admin.config.bootstrap_servers), group_id=group) as consumer:
        consumer.subscribe([topic])

        def has_three() -> bool:
            values.extend(record.value for record in consumer.poll(0.1))
            return len(values) >= 3

        eventually(has_three)
    assert values == [b"7", b"8", b"9"]
    committed = admin.list_group_offsets(group)[TopicPartition(topic, 0)]
    assert isinstance(committed, OffsetAndMetadata)
    assert committed.offset == 10
