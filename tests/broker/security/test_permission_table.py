"""Each row of the permission table is denied once, over the wire; with all allowed nothing is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import uvloop

from odradek.broker.requests.served_apis import SERVED
from odradek.broker.security.acls import Operation, ResourceType
from odradek.broker.security.permissions import PERMISSIONS
from odradek.broker.server import BrokerServer
from odradek.common.acls import (
    ANONYMOUS,
    CLUSTER_NAME,
    RESOURCE_TYPES,
    AccessControlEntry,
    AclPermissionType,
    ResourcePattern,
)
from odradek.common.error_codes import ErrorCode
from odradek.protocol import messages as m
from odradek.protocol.api_key import ApiKey
from odradek.protocol.structs import Message

from ..conftest import Wire
from ..on_this_loop import a_broker, create_topic
from ..wire import a_batch, a_fetch, a_produce

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NO_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

Denied = tuple[tuple[Operation, ResourceType], ...]


class Case(NamedTuple):
    """A request, what is denied, and the error that it must then have, and only then.

    `make` gets the id of the topic `doomed`. Where several rows allow the same, all of them are denied.
    """

    api_key: ApiKey
    denied: Denied
    error_code: ErrorCode
    make: Callable[[bytes], Message]
    version: int | None = None


def produce_in_transaction() -> m.ProduceRequest:
    batch = a_batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = a_produce(batch, "orders")
    request.transactional_id = "x"
    return request


def row(message: Any, **fields: Any) -> Any:
    """A row of a request about partition 0."""
    return message(partitions=[message.Partitions(**fields)])


def of_orders(request: Any, field: str = "name", **fields: Any) -> Any:
    topic = row(request.Topics, **fields)
    setattr(topic, field, "orders")
    return topic


def configs(request: Any, kind: int, name: str, **fields: Any) -> Any:
    return request(resources=[request.Resources(resource_type=kind, resource_name=name)], **fields)


def config_cases(api_key: ApiKey, request: Any, operation: Operation, **fields: Any) -> list[Case]:
    kinds = ((2, "orders", TOPIC, NO_TOPIC), (32, "g", GROUP, NO_GROUP), (4, "0", CLUSTER, NO_CLUSTER))

    def make(number: int, name: str) -> Callable[[bytes], Message]:
        return lambda _: configs(request, number, name, **fields)

    return [
        Case(api_key, ((operation, kind),), error_code, make(number, name))
        for number, name, kind, error_code in kinds
    ]


def commit() -> m.OffsetCommitRequest:
    topic = of_orders(m.OffsetCommitRequest, partition_index=0, committed_offset=1)
    return m.OffsetCommitRequest(group_id="g", topics=[topic])


def added() -> m.AddPartitionsToTxnRequest:
    topics = m.AddPartitionsToTxnRequest.V3AndBelowTopics
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_topics=[topics(name="orders", partitions=[0])]
    )


def transactional_commit() -> m.TxnOffsetCommitRequest:
    topic = of_orders(m.TxnOffsetCommitRequest, partition_index=0, committed_offset=1)
    return m.TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=[topic])


def fetched_offsets() -> m.OffsetFetchRequest:
    topics = m.OffsetFetchRequest.Groups.Topics
    group = m.OffsetFetchRequest.Groups(group_id="g", topics=[topics(name="orders", partition_indexes=[0])])
    return m.OffsetFetchRequest(groups=[group])


def deleted_offsets() -> m.OffsetDeleteRequest:
    return m.OffsetDeleteRequest(group_id="g", topics=[of_orders(m.OffsetDeleteRequest, partition_index=0)])


def heartbeat(member_id: str = "somebody") -> m.ConsumerGroupHeartbeatRequest:
    return m.ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )


def new_topics(name: str = "fresh") -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.Topics(name=name, num_partitions=1, replication_factor=1)
    return m.CreateTopicsRequest(topics=[topic], validate_only=True)


def markers() -> m.WriteTxnMarkersRequest:
    marker = m.WriteTxnMarkersRequest.Markers
    topic = marker.Topics(name="absent", partition_indexes=[0])
    return m.WriteTxnMarkersRequest(markers=[marker(topics=[topic])])


CASES = [
    Case(ApiKey.PRODUCE, ((WRITE, TOPIC),), NO_TOPIC, lambda _: a_produce(a_batch(b"x"), "orders"), 12),
    Case(ApiKey.PRODUCE, ((WRITE, TRANSACTION),), NO_TRANSACTION, lambda _: produce_in_transaction(), 12),
    Case(ApiKey.FETCH, ((READ, TOPIC),), NO_TOPIC, lambda _: a_fetch("orders"), 12),
    Case(ApiKey.FETCH, ((CLUSTER_ACTION, CLUSTER),), NO_TOPIC, lambda _: a_fetch("orders", replica_id=1), 12),
    Case(
        ApiKey.LIST_OFFSETS,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda _: m.ListOffsetsRequest(
            topics=[of_orders(m.ListOffsetsRequest, partition_index=0, timestamp=-1)]
        ),
    ),
    Case(
        ApiKey.METADATA,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda _: m.MetadataRequest(topics=[m.MetadataRequest.Topics(name="orders")]),
    ),
    Case(
        ApiKey.METADATA,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda topic_id: m.MetadataRequest(topics=[m.MetadataRequest.Topics(name=None, topic_id=topic_id)]),
    ),
    Case(
        ApiKey.METADATA,
        ((CREATE, TOPIC), (CREATE, CLUSTER)),
        NO_TOPIC,
        lambda _: m.MetadataRequest(topics=[m.MetadataRequest.Topics(name="made-by-metadata")]),
    ),
    Case(ApiKey.OFFSET_COMMIT, ((READ, GROUP),), NO_GROUP, lambda _: commit(), 9),
    Case(ApiKey.OFFSET_COMMIT, ((READ, TOPIC),), NO_TOPIC, lambda _: commit(), 9),
    Case(ApiKey.OFFSET_FETCH, ((DESCRIBE, GROUP),), NO_GROUP, lambda _: fetched_offsets(), 9),
    Case(ApiKey.OFFSET_FETCH, ((DESCRIBE, TOPIC),), NO_TOPIC, lambda _: fetched_offsets(), 9),
    Case(
        ApiKey.FIND_COORDINATOR,
        ((DESCRIBE, GROUP),),
        NO_GROUP,
        lambda _: m.FindCoordinatorRequest(coordinator_keys=["g"]),
    ),
    Case(
        ApiKey.FIND_COORDINATOR,
        ((DESCRIBE, TRANSACTION),),
        NO_TRANSACTION,
        lambda _: m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]),
    ),
    *(
        Case(
            ApiKey.JOIN_GROUP, ((READ, GROUP),), NO_GROUP, lambda _: m.JoinGroupRequest(group_id="g"), version
        )
        for version in (0, 9)
    ),
    Case(ApiKey.HEARTBEAT, ((READ, GROUP),), NO_GROUP, lambda _: m.HeartbeatRequest(group_id="g")),
    *(
        Case(
            ApiKey.LEAVE_GROUP,
            ((READ, GROUP),),
            NO_GROUP,
            lambda _: m.LeaveGroupRequest(group_id="g"),
            version,
        )
        for version in (0, 5)
    ),
    Case(ApiKey.SYNC_GROUP, ((READ, GROUP),), NO_GROUP, lambda _: m.SyncGroupRequest(group_id="g")),
    Case(
        ApiKey.DESCRIBE_GROUPS,
        ((DESCRIBE, GROUP),),
        NO_GROUP,
        lambda _: m.DescribeGroupsRequest(groups=["g"]),
    ),
    Case(ApiKey.CREATE_TOPICS, ((CREATE, CLUSTER), (CREATE, TOPIC)), NO_TOPIC, lambda _: new_topics()),
    Case(ApiKey.CREATE_TOPICS, ((DESCRIBE_CONFIGS, TOPIC),), NO_TOPIC, lambda _: new_topics()),
    Case(
        ApiKey.DELETE_TOPICS,
        ((DELETE, TOPIC),),
        NO_TOPIC,
        lambda _: m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.Topics(name="absent")]),
    ),
    Case(
        ApiKey.DELETE_TOPICS,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda topic_id: m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.Topics(topic_id=topic_id)], timeout_ms=-1
        ),
    ),
    Case(
        ApiKey.DELETE_RECORDS,
        ((DELETE, TOPIC),),
        NO_TOPIC,
        lambda _: m.DeleteRecordsRequest(
            topics=[of_orders(m.DeleteRecordsRequest, partition_index=0, offset=0)]
        ),
    ),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        ((WRITE, TRANSACTION),),
        NO_TRANSACTION,
        lambda _: m.InitProducerIdRequest(transactional_id="x"),
    ),
    Case(
        ApiKey.INIT_PRODUCER_ID,
        ((Operation.IDEMPOTENT_WRITE, CLUSTER), (WRITE, TOPIC)),
        NO_CLUSTER,
        lambda _: m.InitProducerIdRequest(transactional_id=None),
    ),
    Case(ApiKey.ADD_PARTITIONS_TO_TXN, ((WRITE, TRANSACTION),), NO_TRANSACTION, lambda _: added(), 3),
    Case(ApiKey.ADD_PARTITIONS_TO_TXN, ((WRITE, TOPIC),), NO_TOPIC, lambda _: added(), 3),
    Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ((CLUSTER_ACTION, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.AddPartitionsToTxnRequest(),
    ),
    Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        ((WRITE, TRANSACTION),),
        NO_TRANSACTION,
        lambda _: m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
    ),
    Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        ((READ, GROUP),),
        NO_GROUP,
        lambda _: m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
    ),
    Case(
        ApiKey.END_TXN,
        ((WRITE, TRANSACTION),),
        NO_TRANSACTION,
        lambda _: m.EndTxnRequest(transactional_id="x"),
    ),
    Case(
        ApiKey.WRITE_TXN_MARKERS,
        ((CLUSTER_ACTION, CLUSTER), (ALTER, CLUSTER)),
        NO_CLUSTER,
        lambda _: markers(),
    ),
    *(
        Case(ApiKey.TXN_OFFSET_COMMIT, ((operation, kind),), error_code, lambda _: transactional_commit())
        for operation, kind, error_code in (
            (WRITE, TRANSACTION, NO_TRANSACTION),
            (READ, GROUP, NO_GROUP),
            (READ, TOPIC, NO_TOPIC),
        )
    ),
    Case(
        ApiKey.DESCRIBE_TRANSACTIONS,
        ((DESCRIBE, TRANSACTION),),
        NO_TRANSACTION,
        lambda _: m.DescribeTransactionsRequest(transactional_ids=["x"]),
    ),
    Case(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ((DESCRIBE, TOPIC), (CLUSTER_ACTION, CLUSTER)),
        NO_TOPIC,
        lambda _: m.OffsetForLeaderEpochRequest(
            topics=[of_orders(m.OffsetForLeaderEpochRequest, "topic", partition=0, leader_epoch=0)]
        ),
    ),
    Case(
        ApiKey.DESCRIBE_ACLS,
        ((DESCRIBE, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.DescribeAclsRequest(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        ),
    ),
    Case(
        ApiKey.CREATE_ACLS,
        ((ALTER, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.CreateAclsRequest(creations=[m.CreateAclsRequest.Creations()]),
    ),
    Case(
        ApiKey.DELETE_ACLS,
        ((ALTER, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.Filters()]),
    ),
    *config_cases(ApiKey.DESCRIBE_CONFIGS, m.DescribeConfigsRequest, DESCRIBE_CONFIGS),
    *config_cases(ApiKey.ALTER_CONFIGS, m.AlterConfigsRequest, ALTER_CONFIGS, validate_only=True),
    *config_cases(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, m.IncrementalAlterConfigsRequest, ALTER_CONFIGS, validate_only=True
    ),
    Case(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ((ALTER, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.AlterReplicaLogDirsRequest(
            dirs=[
                m.AlterReplicaLogDirsRequest.Dirs(
                    path="/nowhere",
                    topics=[m.AlterReplicaLogDirsRequest.Dirs.Topics(name="orders", partitions=[0])],
                )
            ]
        ),
    ),
    Case(
        ApiKey.DESCRIBE_LOG_DIRS,
        ((DESCRIBE, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.DescribeLogDirsRequest(topics=None),
    ),
    Case(
        ApiKey.CREATE_PARTITIONS,
        ((ALTER, TOPIC),),
        NO_TOPIC,
        lambda _: m.CreatePartitionsRequest(
            topics=[m.CreatePartitionsRequest.Topics(name="orders", count=2, assignments=None)],
            timeout_ms=10_000,
            validate_only=True,
        ),
    ),
    Case(
        ApiKey.DELETE_GROUPS,
        ((DELETE, GROUP),),
        NO_GROUP,
        lambda _: m.DeleteGroupsRequest(groups_names=["absent"]),
    ),
    Case(ApiKey.OFFSET_DELETE, ((DELETE, GROUP),), NO_GROUP, lambda _: deleted_offsets()),
    Case(ApiKey.OFFSET_DELETE, ((READ, TOPIC),), NO_TOPIC, lambda _: deleted_offsets()),
    Case(ApiKey.UPDATE_FEATURES, ((ALTER, CLUSTER),), NO_CLUSTER, lambda _: m.UpdateFeaturesRequest()),
    Case(
        ApiKey.DESCRIBE_PRODUCERS,
        ((READ, TOPIC),),
        NO_TOPIC,
        lambda _: m.DescribeProducersRequest(
            topics=[m.DescribeProducersRequest.Topics(name="orders", partition_indexes=[0])]
        ),
    ),
    Case(
        ApiKey.ELECT_LEADERS,
        ((ALTER, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.ElectLeadersRequest(topic_partitions=[]),
    ),
    Case(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ((ALTER, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.AlterPartitionReassignmentsRequest(),
    ),
    Case(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ((DESCRIBE, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.ListPartitionReassignmentsRequest(),
    ),
    *(
        # None of these changes anything: their epochs are too low.
        Case(api_key, ((CLUSTER_ACTION, CLUSTER),), NO_CLUSTER, lambda _, request=request: request)
        for api_key, request in {
            ApiKey.LEADER_AND_ISR: m.LeaderAndIsrRequest(broker_epoch=0),
            ApiKey.STOP_REPLICA: m.StopReplicaRequest(broker_epoch=0),
            ApiKey.UPDATE_METADATA: m.UpdateMetadataRequest(broker_epoch=0),
            ApiKey.CONTROLLED_SHUTDOWN: m.ControlledShutdownRequest(broker_epoch=0),
            ApiKey.ALTER_PARTITION: m.AlterPartitionRequest(broker_epoch=0),
            ApiKey.ALLOCATE_PRODUCER_IDS: m.AllocateProducerIdsRequest(broker_epoch=0),
        }.items()
    ),
    Case(ApiKey.CONSUMER_GROUP_HEARTBEAT, ((READ, GROUP),), NO_GROUP, lambda _: heartbeat("other")),
    Case(ApiKey.CONSUMER_GROUP_HEARTBEAT, ((DESCRIBE, TOPIC),), NO_TOPIC, lambda _: heartbeat("other")),
    Case(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ((DESCRIBE, GROUP),),
        NO_GROUP,
        lambda _: m.ConsumerGroupDescribeRequest(group_ids=["new"]),
    ),
    Case(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda _: m.ConsumerGroupDescribeRequest(group_ids=["new"]),
    ),
    Case(
        ApiKey.LIST_CONFIG_RESOURCES,
        ((DESCRIBE_CONFIGS, CLUSTER),),
        NO_CLUSTER,
        lambda _: m.ListConfigResourcesRequest(),
    ),
    Case(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ((DESCRIBE, TOPIC),),
        NO_TOPIC,
        lambda _: m.DescribeTopicPartitionsRequest(
            topics=[m.DescribeTopicPartitionsRequest.Topics(name="orders")]
        ),
    ),
]
# What is not allowed is left out of these answers; the tests below look at them.
WITHOUT_ERRORS = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}


class Secured(NamedTuple):
    """A broker whose ACLs a test sets, and a connection."""

    runner: asyncio.Runner
    server: BrokerServer
    wire: Wire
    doomed_id: bytes

    def deny(self, *denied: tuple[Operation, ResourceType]) -> None:
        """Everybody is allowed everything but this, as if it stood in the store so."""
        authorizer: Any = self.server.services.authorizer
        acls = {
            ResourcePattern(kind, CLUSTER_NAME if kind is CLUSTER else "*"): [
                AccessControlEntry(ANONYMOUS, "*", Operation.ALL, AclPermissionType.ALLOW)
            ]
            for kind in RESOURCE_TYPES
        }
        for operation, kind in denied:
            pattern = ResourcePattern(kind, CLUSTER_NAME if kind is CLUSTER else "*")
            acls[pattern].append(AccessControlEntry(ANONYMOUS, "*", operation, AclPermissionType.DENY))
        authorizer.replace_all({pattern: tuple(entries) for pattern, entries in acls.items()})

    def ask(self, api_key: ApiKey, request: Message, version: int | None = None) -> Any:
        used = SERVED[api_key].high if version is None else version
        return self.runner.run(asyncio.wait_for(self.wire.ask(api_key, used, request), 30))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    settings = (
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        "group.consumer.assignment.interval.ms=0",
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        running = a_broker(tmp_path_factory.mktemp("broker"), *settings)
        server, wire = runner.run(running.__aenter__())
        secured = Secured(runner, server, wire, b"")
        secured.deny()
        for topic in ("orders", "doomed"):
            runner.run(create_topic(wire, topic))
        secured.ask(ApiKey.FIND_COORDINATOR, m.FindCoordinatorRequest(coordinator_keys=["g"]))
        while secured.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat()).error_code:
            pass
        yield secured._replace(doomed_id=server.services.image.topics["doomed"].topic_id)
        runner.run(running.__aexit__(None, None, None))


def error_codes(answer: Any) -> set[int]:
    """Every error anywhere in an answer."""
    if isinstance(answer, list):
        return {code for one in answer for code in error_codes(one)}
    if not hasattr(answer, "__slots__") or isinstance(answer, bytes):
        return set()
    codes = set()
    for name in type(answer).__slots__:
        value = getattr(answer, name, None)
        codes |= {value} if name.endswith("error_code") else error_codes(value)
    return codes - {0}


def name_of(case: Case) -> str:
    denied = "-".join(f"{operation.name}-{kind.name}" for operation, kind in case.denied)
    return f"{case.api_key.name}-{case.version}-{denied}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_what_is_denied_is_refused_with_the_right_code(broker: Secured, case: Case) -> None:
    request = case.make(broker.doomed_id)
    broker.deny(*case.denied)
    assert error_codes(broker.ask(case.api_key, request, case.version)) == {case.error_code}

    broker.deny()
    assert case.error_code not in error_codes(broker.ask(case.api_key, request, case.version))


def test_every_row_of_the_table_has_a_case() -> None:
    tried = {(case.api_key, *row) for case in CASES for row in case.denied}
    wanted = {
        (api_key, one.operation, one.resource_type)
        for api_key in SERVED
        if api_key not in WITHOUT_ERRORS
        for one in PERMISSIONS[api_key]
    }
    assert tried == wanted


@pytest.mark.parametrize("denied", [CLUSTER_ACTION, ALTER], ids=lambda operation: operation.name)
def test_brokers_and_administrators_may_write_markers(broker: Secured, denied: Operation) -> None:
    broker.deny((denied, CLUSTER))
    answer = broker.ask(ApiKey.WRITE_TXN_MARKERS, markers())
    assert error_codes(answer) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_groups_that_may_not_be_described_are_not_listed(broker: Secured) -> None:
    def listed() -> list[str]:
        groups = broker.ask(ApiKey.LIST_GROUPS, m.ListGroupsRequest()).groups
        return [group.group_id for group in groups]

    broker.deny((DESCRIBE, GROUP))
    assert "new" in listed()  # who may describe the cluster sees all groups
    broker.deny((DESCRIBE, CLUSTER))
    assert "new" in listed()
    broker.deny((DESCRIBE, GROUP), (DESCRIBE, CLUSTER))
    assert listed() == []


def test_transactions_that_may_not_be_described_are_not_listed(broker: Secured) -> None:
    def listed() -> list[str]:
        answer = broker.ask(ApiKey.LIST_TRANSACTIONS, m.ListTransactionsRequest())
        return [one.transactional_id for one in answer.transaction_states]

    broker.deny()
    broker.ask(ApiKey.FIND_COORDINATOR, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["seen"]))
    init = m.InitProducerIdRequest(transactional_id="seen", transaction_timeout_ms=1000)
    while broker.ask(ApiKey.INIT_PRODUCER_ID, init, 5).error_code:
        pass
    assert listed() == ["seen"]
    broker.deny((DESCRIBE, TRANSACTION))
    assert listed() == []


def test_topics_that_may_not_be_described_are_left_out_where_all_are_asked_for(broker: Secured) -> None:
    for denied, expected in (((), True), (((DESCRIBE, TOPIC),), False)):
        broker.deny(*denied)
        everything = broker.ask(ApiKey.METADATA, m.MetadataRequest(topics=None))
        assert (everything.topics != []) == expected
        described = broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, m.DescribeTopicPartitionsRequest())
        assert (described.topics != []) == expected
        group = m.OffsetFetchRequest.Groups(group_id="g", topics=None)
        assert error_codes(broker.ask(ApiKey.OFFSET_FETCH, m.OffsetFetchRequest(groups=[group]))) == set()


def test_a_topic_id_does_not_reveal_a_name(broker: Secured) -> None:
    topic_id = broker.server.services.image.topics["orders"].topic_id
    broker.deny((DESCRIBE, TOPIC))
    request = m.MetadataRequest(topics=[m.MetadataRequest.Topics(name=None, topic_id=topic_id)])
    (topic,) = broker.ask(ApiKey.METADATA, request).topics
    assert (topic.name, topic.topic_id, topic.partitions) == (None, topic_id, [])
    by_id = m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.Topics(topic_id=topic_id)])
    (deleted,) = broker.ask(ApiKey.DELETE_TOPICS, by_id).responses
    assert (deleted.name, deleted.topic_id) == (None, topic_id)


def test_a_pattern_finds_only_topics_that_may_be_described(broker: Secured) -> None:
    def subscribe(group_id: str) -> set[str]:
        request = heartbeat()
        request.group_id = group_id
        request.subscribed_topic_names, request.subscribed_topic_regex = None, "ord.*"
        assert broker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request).error_code == 0
        described = m.ConsumerGroupDescribeRequest(group_ids=[group_id])
        broker.deny()
        (group,) = broker.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, described).groups
        return {
            topic.topic_name
            for member in group.members
            for topic in member.target_assignment.topic_partitions
        }

    broker.deny()
    assert subscribe("by-pattern") == {"orders"}
    broker.deny((DESCRIBE, TOPIC))
    assert subscribe("by-pattern-denied") == set()


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


def test_authorised_operations_are_those_that_are_allowed(broker: Secured) -> None:
    broker.deny((WRITE, TOPIC), (DELETE, GROUP), (ALTER, CLUSTER))
    asked = m.MetadataRequest(
        topics=[m.MetadataRequest.Topics(name="orders")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = broker.ask(ApiKey.METADATA, asked, 10)
    on_topic = bits(READ, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    on_cluster = bits(
        CREATE, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE
    )
    on_group = bits(READ, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    assert answer.topics[0].topic_authorized_operations == on_topic
    assert answer.cluster_authorized_operations == on_cluster
    cluster = m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert broker.ask(ApiKey.DESCRIBE_CLUSTER, cluster).cluster_authorized_operations == on_cluster
    described = broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, m.DescribeTopicPartitionsRequest()).topics
    assert {topic.topic_authorized_operations for topic in described} == {on_topic}
    groups = m.ConsumerGroupDescribeRequest(group_ids=["new"], include_authorized_operations=True)
    assert broker.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, groups).groups[0].authorized_operations == on_group

    broker.deny((DESCRIBE, CLUSTER))
    assert broker.ask(ApiKey.DESCRIBE_CLUSTER, cluster).cluster_authorized_operations == 0
