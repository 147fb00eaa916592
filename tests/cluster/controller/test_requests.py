from __future__ import annotations

from cluster.controller.contexts import EPOCH, LISTENER, a_context, put
from odradek.cluster.controller.requests import EPOCH_DURING_DELETE, RequestBatch
from odradek.cluster.metadata import LEADER_DURING_DELETE, UPDATE_TYPE_FULL, MetadataImage
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest


def a_batch() -> RequestBatch:
    return RequestBatch(controller_id=1, inter_broker_listener=LISTENER)


def test_each_broker_gets_one_request_of_each_kind_in_order():
    context = a_context(live=[1, 2])
    one = put(context, "a", 0, (1, 2), leader=1, isr=(1, 2))
    two = put(context, "b", 0, (2, 1), leader=2, isr=(1, 2))
    batch = a_batch()
    batch.stop_replica(2, two, delete=False)
    batch.add_update_metadata([1, 2], [one, two])
    batch.add_leader_and_isr([1, 2], one)
    batch.add_leader_and_isr([2], two, is_new=True)

    taken = batch.drain(context)

    assert [(id_, type(request).__name__) for id_, request in taken] == [
        (1, "LeaderAndIsrRequest"),
        (1, "UpdateMetadataRequest"),
        (2, "LeaderAndIsrRequest"),
        (2, "UpdateMetadataRequest"),
        (2, "StopReplicaRequest"),
    ]
    assert all(request.controller_epoch == EPOCH for _, request in taken)
    assert [request.broker_epoch for _, request in taken] == [101, 101, 102, 102, 102]
    leaders = taken[2][1]
    assert isinstance(leaders, LeaderAndIsrRequest)
    assert [(t.topic_name, [p.is_new for p in t.partition_states]) for t in leaders.topic_states] == [
        ("a", [False]),
        ("b", [True]),
    ]
    assert [leader.host_name for leader in leaders.live_leaders] == ["host1", "host2"]
    assert batch.drain(context) == []


def test_a_broker_that_gets_a_full_request_deletes_before_it_looks_for_strays():
    context = a_context(live=[1])
    put(context, "kept", 0, (1,), leader=1, isr=(1,))
    doomed = put(context, "doomed", 0, (1,), leader=1, isr=(1,))
    context.deletions.queued.add("doomed")
    batch = a_batch()
    batch.add_full_state([1])
    batch.stop_replica(1, doomed, delete=True)

    assert [type(request).__name__ for _, request in batch.drain(context)] == [
        "StopReplicaRequest",
        "LeaderAndIsrRequest",
        "UpdateMetadataRequest",
    ]


def test_dead_brokers_get_no_requests():
    context = a_context(live=[1])
    partition = put(context, "a", 0, (1, 2), leader=1, isr=(1,))
    batch = a_batch()
    batch.add_leader_and_isr([1, 2], partition)
    batch.stop_replica(2, partition, delete=True)

    assert {broker_id for broker_id, _ in batch.drain(context)} == {1}


def test_everything_names_all_topics_and_only_the_brokers_own_replicas():
    context = a_context(live=[1, 2])
    put(context, "a", 0, (1,), leader=1, isr=(1,))
    put(context, "b", 0, (2,), leader=2, isr=(2,))
    batch = a_batch()
    batch.add_full_state([1])

    (_, leaders), (_, metadata) = batch.drain(context)

    assert isinstance(leaders, LeaderAndIsrRequest)
    assert isinstance(metadata, UpdateMetadataRequest)
    assert (leaders.type, metadata.type) == (UPDATE_TYPE_FULL, UPDATE_TYPE_FULL)
    assert [topic.topic_name for topic in leaders.topic_states] == ["a"]
    assert [topic.topic_name for topic in metadata.topic_states] == ["a", "b"]


def test_a_topic_in_deletion_vanishes_from_the_image_that_is_sent():
    context = a_context(live=[1])
    partition = put(context, "a", 0, (1,), leader=1, isr=(1,))
    never_led = TopicPartition("a", 1)
    image = MetadataImage("cluster")
    batch = a_batch()
    batch.add_update_metadata([1], [partition])
    for _, request in batch.drain(context):
        image.update(request)  # type: ignore[arg-type]
    assert "a" in image.topics

    context.deletions.queued.add("a")
    batch.add_update_metadata([1], [partition, never_led])
    batch.add_leader_and_isr([1], partition)
    batch.stop_replica(1, partition, delete=True)
    (_, leaders), (_, metadata), (_, stop) = batch.drain(context)

    assert isinstance(leaders, LeaderAndIsrRequest)
    assert leaders.topic_states == []
    assert isinstance(metadata, UpdateMetadataRequest)
    states = metadata.topic_states[0].partition_states
    assert [state.leader for state in states] == [LEADER_DURING_DELETE, LEADER_DURING_DELETE]
    image.update(metadata)
    assert image.topics == {}
    assert isinstance(stop, StopReplicaRequest)
    (state,) = stop.topic_states[0].partition_states
    assert (state.leader_epoch, state.delete_partition) == (EPOCH_DURING_DELETE, True)


def test_requests_go_through_the_wire_unchanged():
    context = a_context(live=[1, 2])
    partition = put(context, "a", 0, (1, 2), leader=1, isr=(1,))
    batch = a_batch()
    batch.add_full_state([2])
    batch.stop_replica(2, partition, delete=False)

    for _, request in batch.drain(context):
        version = request.SPEC.versions[1]
        assert type(request).decode(request.encode(version), version)[0] == request
