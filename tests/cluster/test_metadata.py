from __future__ import annotations

from uuid import UUID

import pytest

from odradek.cluster.membership.brokers import Endpoint, SecurityProtocol
from odradek.cluster.metadata import (
    LEADER_DURING_DELETE,
    UPDATE_TYPE_FULL,
    ImageChange,
    MetadataImage,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import UpdateMetadataRequest

Topic = UpdateMetadataRequest.TopicStates
Partition = UpdateMetadataRequest.TopicStates.PartitionStates
Live = UpdateMetadataRequest.LiveBrokers

ID_A, ID_B = UUID(int=1).bytes, UUID(int=2).bytes


def a_partition(index: int, leader: int = 0, **fields: object) -> Partition:
    return Partition(partition_index=index, leader=leader, isr=[0], replicas=[0], **fields)  # type: ignore[arg-type]


def an_update(*topics: Topic, **fields: object) -> UpdateMetadataRequest:
    broker = Live(id=0, rack="r", endpoints=[Live.Endpoints(port=9092, host="h", listener="PLAINTEXT")])
    return UpdateMetadataRequest(controller_id=0, live_brokers=[broker], topic_states=list(topics), **fields)  # type: ignore[arg-type]


def test_an_update_adds_to_what_is_known():
    image = MetadataImage("cluster")
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(0)])))
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(1, leader=5)])))

    assert sorted(image.topics["a"].partitions) == [0, 1]
    assert image.partition("a", 1).leader == 5
    assert image.partition("a", 2) is None
    assert image.topic_by_id(ID_A) is image.topics["a"]
    assert image.controller_id == 0
    assert image.brokers[0].endpoint("PLAINTEXT") == Endpoint(
        "PLAINTEXT", "h", 9092, SecurityProtocol.PLAINTEXT
    )
    assert image.brokers[0].endpoint("SSL") is None


def test_live_brokers_are_replaced_as_a_whole_and_keep_their_epochs():
    image = MetadataImage("cluster")
    image.set_broker_epochs({0: 77})
    image.update(an_update())
    assert image.brokers[0].epoch == 77

    image.update(UpdateMetadataRequest(controller_id=1, live_brokers=[Live(id=1)]))
    assert list(image.brokers) == [1]
    assert image.brokers[1].epoch == -1


def test_an_unknown_security_protocol_is_refused_and_nothing_changes():
    image = MetadataImage("cluster")
    image.update(an_update())
    live = Live(id=1, endpoints=[Live.Endpoints(port=9092, host="h", listener="X", security_protocol=100)])
    with pytest.raises(KafkaError, match="security protocol 100") as refused:
        image.update(UpdateMetadataRequest(controller_id=1, live_brokers=[live]))
    assert refused.value.error_code == ErrorCode.INVALID_REQUEST
    assert (image.controller_id, list(image.brokers), image.version) == (0, [0], 1)


def test_a_partition_led_during_delete_goes_and_the_topic_with_its_last():
    image = MetadataImage("cluster")
    image.update(
        an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(0), a_partition(1)]))
    )
    seen: list[ImageChange] = []
    image.listeners.append(seen.append)

    gone = a_partition(0, leader=LEADER_DURING_DELETE)
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[gone])))
    assert sorted(image.topics["a"].partitions) == [1]

    gone = a_partition(1, leader=LEADER_DURING_DELETE)
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[gone])))
    assert image.topics == {}
    assert image.names_by_id == {}
    assert [change.deleted for change in seen] == [{TopicPartition("a", 0)}, {TopicPartition("a", 1)}]


def test_a_topic_created_again_drops_the_partitions_of_the_old_one():
    image = MetadataImage("cluster")
    old = [a_partition(index) for index in range(3)]
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=old)))

    change = image.update(an_update(Topic(topic_name="a", topic_id=ID_B, partition_states=[a_partition(0)])))

    assert sorted(image.topics["a"].partitions) == [0]
    assert image.topic_by_id(ID_A) is None
    assert image.topic_by_id(ID_B) is image.topics["a"]
    assert change.deleted == {TopicPartition("a", index) for index in range(3)}


def test_an_update_without_topic_id_keeps_the_known_one():
    image = MetadataImage("cluster")
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(0)])))
    image.update(an_update(Topic(topic_name="a", partition_states=[a_partition(1)])))

    assert image.topics["a"].topic_id == ID_A
    assert sorted(image.topics["a"].partitions) == [0, 1]


def test_a_full_update_forgets_what_it_does_not_name():
    image = MetadataImage("cluster")
    image.update(
        an_update(
            Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(0)]),
            Topic(topic_name="b", topic_id=ID_B, partition_states=[a_partition(0)]),
        )
    )

    full = an_update(
        Topic(topic_name="b", topic_id=ID_B, partition_states=[a_partition(0)]), type=UPDATE_TYPE_FULL
    )
    change = image.update(full)

    assert list(image.topics) == ["b"]
    assert change.deleted == {TopicPartition("a", 0)}


def test_a_topic_kept_by_a_reader_does_not_change_under_it():
    image = MetadataImage("cluster")
    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(0)])))
    kept = image.topics["a"]

    image.update(an_update(Topic(topic_name="a", topic_id=ID_A, partition_states=[a_partition(1)])))

    assert sorted(kept.partitions) == [0]
