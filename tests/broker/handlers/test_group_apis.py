"""The group APIs over the wire, in every version that is served: what clients of all ages send."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker.running import RunningBroker
from odradek.broker.requests.served_apis import SERVED
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from odradek.records.builder import build_batch
from odradek.records.record import Record

CommitTopic = OffsetCommitRequest.Topics
DeletedTopic = OffsetDeleteRequest.Topics
FetchGroup = OffsetFetchRequest.Groups


def versions(api_key: ApiKey) -> range:
    served = SERVED[api_key]
    return range(served.low, served.high + 1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=3")
    with RunningBroker(tmp_path_factory.mktemp("data"), *settings) as running:
        topic = CreateTopicsRequest.Topics(name="orders", num_partitions=2, replication_factor=1)
        running.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        find(running, 4)
        yield running


@pytest.fixture(scope="module")
def topic_id(broker: RunningBroker) -> bytes:
    asked = MetadataRequest(topics=[MetadataRequest.Topics(name="orders")])
    return broker.ask(ApiKey.METADATA, 12, asked).topics[0].topic_id


def find(broker: RunningBroker, version: int, key_type: int = 0):
    request = FindCoordinatorRequest(key_type=key_type) if version else FindCoordinatorRequest()
    if version < 4:
        request.key = "g"
        return broker.ask(ApiKey.FIND_COORDINATOR, version, request)
    request.coordinator_keys = ["g", "other"]
    return broker.ask(ApiKey.FIND_COORDINATOR, version, request).coordinators[0]


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_the_coordinator_is_found_in_every_version(broker, version):
    found = find(broker, version)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 0)
    assert f"{found.host}:{found.port}" == broker.address


def test_other_kinds_of_coordinators_are_not_to_be_had(broker):
    assert find(broker, 4, key_type=2).error_code == ErrorCode.INVALID_REQUEST


def test_offsets_live_in_a_compacted_topic_with_as_many_replicas_as_brokers(broker):
    asked = MetadataRequest(topics=[MetadataRequest.Topics(name="__consumer_offsets")])
    (topic,) = broker.ask(ApiKey.METADATA, 9, asked).topics
    assert topic.is_internal
    assert [partition.replica_nodes for partition in topic.partitions] == [[0], [0], [0]]
    resource = DescribeConfigsRequest.Resources(
        resource_type=2, resource_name="__consumer_offsets", configuration_keys=["cleanup.policy"]
    )
    described = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource]))
    assert described.results[0].configs[0].value == "compact"


def join(broker: RunningBroker, version: int, group: str, member_id: str = ""):
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocols(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
    )
    return broker.ask(ApiKey.JOIN_GROUP, version, request)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_group_lives_and_dies_in_every_version(broker, version):
    group = f"life-{version}"
    joined = join(broker, version, group)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = join(broker, version, group, joined.member_id)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert [member.member_id for member in joined.members] == [joined.member_id]

    who = {"group_id": group, "generation_id": 1, "member_id": joined.member_id}
    given = SyncGroupRequest.Assignments(member_id=joined.member_id, assignment=b"work")
    names = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    sync = SyncGroupRequest(**who, **names, assignments=[given])
    synced = broker.ask(ApiKey.SYNC_GROUP, min(version, 5), sync)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"work")
    beaten = broker.ask(ApiKey.HEARTBEAT, min(version, 4), HeartbeatRequest(**who))
    assert beaten.error_code == ErrorCode.NONE

    described = broker.ask(
        ApiKey.DESCRIBE_GROUPS, min(version, 6), DescribeGroupsRequest(groups=[group, "no such group"])
    ).groups
    assert (described[0].group_state, described[0].members[0].client_host) == ("Stable", "/127.0.0.1")
    missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert (described[1].error_code, described[1].group_state) == (missing, "Dead")
    listed = broker.ask(ApiKey.LIST_GROUPS, min(version, 5), ListGroupsRequest()).groups
    assert group in [one.group_id for one in listed]

    refused = broker.ask(ApiKey.DELETE_GROUPS, min(version, 2), DeleteGroupsRequest(groups_names=[group]))
    assert refused.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    leave_version = min(version, 5)
    leaving = LeaveGroupRequest(group_id=group)
    if leave_version < 3:
        leaving.member_id = joined.member_id
    else:
        leaving.members = [LeaveGroupRequest.Members(member_id=joined.member_id)]
    left = broker.ask(ApiKey.LEAVE_GROUP, leave_version, leaving)
    assert left.error_code == ErrorCode.NONE
    deleted = broker.ask(ApiKey.DELETE_GROUPS, min(version, 2), DeleteGroupsRequest(groups_names=[group]))
    assert deleted.results[0].error_code == ErrorCode.NONE


def test_errors_of_a_join_are_reported_in_every_version(broker):
    for version in versions(ApiKey.JOIN_GROUP):
        refused = join(broker, version, "", "m")
        assert (refused.error_code, refused.member_id) == (ErrorCode.INVALID_GROUP_ID, "m")
        unknown = join(broker, version, "nobody there", "m")
        assert (unknown.error_code, unknown.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_and_their_notes_come_back_in_every_version(broker, topic_id, version):
    group = f"offsets-{version}"
    parts = [
        CommitTopic.Partitions(partition_index=index, committed_offset=40 + index, committed_metadata=note)
        for index, note in ((0, "a note"), (1, None), (9, ""))
    ]
    named = {"topic_id": topic_id} if version >= 10 else {"name": "orders"}
    request = OffsetCommitRequest(group_id=group, topics=[CommitTopic(partitions=parts, **named)])
    committed = broker.ask(ApiKey.OFFSET_COMMIT, version, request)
    assert [row.error_code for row in committed.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    for fetch_version in versions(ApiKey.OFFSET_FETCH):
        for asks_for_all in (False, True):
            if asks_for_all and fetch_version < 2:
                continue
            rows = fetch(broker, fetch_version, group, topic_id, asks_for_all=asks_for_all)
            assert rows == [(0, 40, "a note"), (1, 41, "")]


def fetch(broker: RunningBroker, version: int, group: str, topic_id: bytes, *, asks_for_all: bool):
    if version < 8:
        topic = OffsetFetchRequest.Topics(name="orders", partition_indexes=[0, 1])
        request = OffsetFetchRequest(group_id=group, topics=None if asks_for_all else [topic])
        answer = broker.ask(ApiKey.OFFSET_FETCH, version, request)
    else:
        named = {"topic_id": topic_id} if version >= 10 else {"name": "orders"}
        topics = [FetchGroup.Topics(partition_indexes=[0, 1], **named)]
        asked = FetchGroup(group_id=group, topics=None if asks_for_all else topics)
        answer = broker.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=[asked])).groups[0]
        assert answer.topics[0].topic_id == (topic_id if version >= 10 else bytes(16))
    assert answer.error_code == ErrorCode.NONE
    rows = answer.topics[0].partitions
    return sorted((row.partition_index, row.committed_offset, row.metadata) for row in rows)


def test_topics_that_do_not_exist_are_refused_by_name_and_by_id(broker):
    part = CommitTopic.Partitions(partition_index=0, committed_offset=1, committed_metadata="")
    for version, named, error in (
        (9, {"name": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (10, {"topic_id": b"x" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        request = OffsetCommitRequest(group_id="g", topics=[CommitTopic(partitions=[part], **named)])
        answer = broker.ask(ApiKey.OFFSET_COMMIT, version, request)
        assert answer.topics[0].partitions[0].error_code == error
    unknown = FetchGroup(group_id="g", topics=[FetchGroup.Topics(topic_id=b"x" * 16, partition_indexes=[0])])
    answer = broker.ask(ApiKey.OFFSET_FETCH, 10, OffsetFetchRequest(groups=[unknown]))
    assert answer.groups[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_offsets_are_deleted_by_partition(broker, topic_id):
    part = CommitTopic.Partitions(partition_index=0, committed_offset=1, committed_metadata="")
    broker.ask(
        ApiKey.OFFSET_COMMIT,
        9,
        OffsetCommitRequest(group_id="deleted", topics=[CommitTopic(name="orders", partitions=[part])]),
    )
    asked = DeletedTopic(
        name="orders", partitions=[DeletedTopic.Partitions(partition_index=index) for index in (0, 9)]
    )
    answer = broker.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="deleted", topics=[asked]))
    assert [row.error_code for row in answer.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    missing = broker.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="none", topics=[asked]))
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_topic_created_again_begins_without_offsets(broker):
    made = CreateTopicsRequest.Topics(name="short-lived", num_partitions=1, replication_factor=1)
    broker.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[made], timeout_ms=10_000))
    part = CommitTopic.Partitions(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [CommitTopic(name="short-lived", partitions=[part])]
    broker.ask(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id="survivor", topics=topics))
    deleted = DeleteTopicsRequest(topic_names=["short-lived"], timeout_ms=10_000)
    broker.ask(ApiKey.DELETE_TOPICS, 5, deleted)
    asked = OffsetFetchRequest(groups=[FetchGroup(group_id="survivor", topics=None)])
    deadline = time.monotonic() + 20
    while broker.ask(ApiKey.OFFSET_FETCH, 9, asked).groups[0].topics:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("version", versions(ApiKey.CONSUMER_GROUP_HEARTBEAT))
def test_a_group_of_the_new_protocol_lives_in_every_version(broker, topic_id, version):
    group = f"modern-{version}"
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m" * version,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    joined = broker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
    assert joined.error_code == ErrorCode.NONE
    assert joined.member_id
    (topic,) = joined.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (topic_id, [0, 1])
    asked = ConsumerGroupDescribeRequest(group_ids=[group, "no such group"])
    described = broker.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, version, asked).groups
    assert described[0].members[0].assignment.topic_partitions[0].topic_name == "orders"
    assert described[1].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    for kind in ("consumer", "classic"):
        listed = broker.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(types_filter=[kind])).groups
        assert (group in [one.group_id for one in listed]) is (kind == "consumer")
    left = broker.ask(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        version,
        ConsumerGroupHeartbeatRequest(group_id=group, member_id=joined.member_id, member_epoch=-1),
    )
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)


def test_a_pattern_of_the_new_protocol_matches_internal_topics_too(broker, topic_id):
    request = ConsumerGroupHeartbeatRequest(
        group_id="all topics",
        member_id="m",
        rebalance_timeout_ms=10_000,
        subscribed_topic_regex="orders|__consumer.*",
        topic_partitions=[],
    )
    joined = broker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    described = broker.ask(
        ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(group_ids=["all topics"])
    )
    assert joined.error_code == ErrorCode.NONE
    assigned = described.groups[0].members[0].target_assignment.topic_partitions
    assert {topic.topic_name for topic in assigned} == {"orders", "__consumer_offsets"}


def test_clients_cannot_write_into_the_topic_of_offsets(broker):
    batch = build_batch([Record(0, 0, b"k", b"v")])
    part = ProduceRequest.TopicData.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name="__consumer_offsets", partition_data=[part])
    answer = broker.ask(ApiKey.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]))
    refused = answer.responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
