from __future__ import annotations

from uuid import UUID

import pytest

from odradek.cluster.metadata import MetadataImage
from odradek.cluster.metadata_answers import MAX_TOPICS_DESCRIBED, Cursor, MetadataAnswers
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.messages import MetadataResponse, UpdateMetadataRequest

Topic = UpdateMetadataRequest.TopicStates
Partition = UpdateMetadataRequest.TopicStates.PartitionStates
Live = UpdateMetadataRequest.LiveBrokers

ID_A = UUID(int=1).bytes


def endpoint(listener: str, port: int) -> Live.Endpoints:
    return Live.Endpoints(port=port, host="h", listener=listener)


def an_image(*topics: Topic) -> MetadataImage:
    image = MetadataImage("the-cluster")
    brokers = [
        Live(id=0, rack=None, endpoints=[endpoint("PLAINTEXT", 1), endpoint("SSL", 2)]),
        Live(id=1, rack="r1", endpoints=[endpoint("PLAINTEXT", 3)]),
    ]
    image.update(UpdateMetadataRequest(controller_id=1, live_brokers=brokers, topic_states=list(topics)))
    return image


def a_topic(name: str, *leaders: int, topic_id: bytes = ID_A, replicas: tuple[int, ...] = (0, 1)) -> Topic:
    return Topic(
        topic_name=name,
        topic_id=topic_id,
        partition_states=[
            Partition(
                partition_index=index,
                leader=leader,
                leader_epoch=4,
                isr=list(replicas),
                replicas=list(replicas),
            )
            for index, leader in enumerate(leaders)
        ],
    )


def test_the_answer_reports_brokers_controller_cluster_and_topics():
    answers = MetadataAnswers(an_image(a_topic("a", 0, 1)), "PLAINTEXT")

    response = answers.metadata(None, 12)

    assert [(b.node_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (0, "h", 1, None),
        (1, "h", 3, "r1"),
    ]
    assert (response.cluster_id, response.controller_id) == ("the-cluster", 1)
    (topic,) = response.topics
    assert (topic.name, topic.topic_id, topic.error_code, topic.is_internal) == ("a", ID_A, 0, False)
    assert [(p.partition_index, p.leader_id, p.leader_epoch) for p in topic.partitions] == [
        (0, 0, 4),
        (1, 1, 4),
    ]


@pytest.mark.parametrize("version", range(14))
def test_every_version_can_be_encoded(version):
    answers = MetadataAnswers(an_image(a_topic("a", 0, 9)), "PLAINTEXT")
    encoded = answers.metadata(["a", "unknown"], version).encode(version)
    decoded, _ = MetadataResponse.decode(encoded, version)
    assert [topic.error_code for topic in decoded.topics] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_dead_leader_is_not_named():
    answers = MetadataAnswers(an_image(a_topic("a", 9)), "PLAINTEXT")
    (partition,) = answers.topic("a", 12).partitions
    assert (partition.leader_id, partition.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
    assert partition.leader_epoch == 4


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
def test_a_leader_without_the_clients_listener_is_distinguished_from_version_six(version, error):
    answers = MetadataAnswers(an_image(a_topic("a", 1)), "SSL")
    (partition,) = answers.topic("a", version).partitions
    assert (partition.leader_id, partition.error_code) == (-1, error)


def test_only_version_zero_reports_dead_replicas_by_an_error():
    answers = MetadataAnswers(an_image(a_topic("a", 0, replicas=(0, 9))), "PLAINTEXT")

    (old,) = answers.topic("a", 0).partitions
    (new,) = answers.topic("a", 1).partitions

    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [0], [0])
    assert (new.error_code, new.replica_nodes, new.isr_nodes) == (ErrorCode.NONE, [0, 9], [0, 9])


def test_topics_that_are_not_there_have_their_errors():
    answers = MetadataAnswers(an_image(), "PLAINTEXT")

    assert answers.topic("no", 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers.topic("../x", 12).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    by_id = answers.topic_by_id(ID_A, 12)
    assert (by_id.error_code, by_id.name, by_id.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, ID_A)


def test_a_topic_is_found_by_its_id_and_internal_ones_are_marked():
    answers = MetadataAnswers(an_image(a_topic("__consumer_offsets", 0)), "PLAINTEXT")
    topic = answers.topic_by_id(ID_A, 12)
    assert (topic.name, topic.is_internal) == ("__consumer_offsets", True)


def test_an_answer_is_made_once_until_the_image_changes():
    image = an_image(a_topic("a", 0))
    answers = MetadataAnswers(image, "PLAINTEXT")
    first = answers.topic("a", 12)
    assert answers.topic("a", 9) is first

    image.update(UpdateMetadataRequest(controller_id=1, live_brokers=[], topic_states=[a_topic("a", 1)]))
    assert answers.topic("a", 12).partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_describe_cluster_lists_the_brokers_of_the_listener():
    response = MetadataAnswers(an_image(), "SSL").describe_cluster()
    assert [(b.broker_id, b.port) for b in response.brokers] == [(0, 2)]
    assert (response.cluster_id, response.controller_id) == ("the-cluster", 1)


def pages(answers: MetadataAnswers, names: list[str] | None, limit: int) -> list[list[tuple[str, int]]]:
    cursor, found = None, []
    while True:
        response = answers.describe_topics(names, limit, cursor)
        found.append([(t.name or "", p.partition_index) for t in response.topics for p in t.partitions])
        if response.next_cursor is None:
            return found
        cursor = Cursor(response.next_cursor.topic_name, response.next_cursor.partition_index)


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_description_in_pieces_reports_each_partition_once(limit):
    image = an_image(a_topic("b", 0, 0, 0), a_topic("a", 0, 0), a_topic("c", 0, 0))
    everything = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]

    found = pages(MetadataAnswers(image, "PLAINTEXT"), None, limit)

    assert [one for page in found for one in page] == everything
    assert all(len(page) == limit for page in found[:-1])


def test_a_described_topic_that_is_not_there_costs_nothing_of_the_limit():
    answers = MetadataAnswers(an_image(a_topic("b", 0)), "PLAINTEXT")
    response = answers.describe_topics(["a", "b"], 1)
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", ErrorCode.NONE),
    ]
    assert response.next_cursor is None


def test_very_many_topics_that_are_not_there_are_described_in_pieces():
    answers = MetadataAnswers(an_image(), "PLAINTEXT")
    names = [f"t{number:05}" for number in range(MAX_TOPICS_DESCRIBED + 1)]

    first = answers.describe_topics(names, 1)
    assert [topic.name for topic in first.topics] == names[:-1]
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == (names[-1], 0)
    last = answers.describe_topics(names, 1, Cursor(names[-1], 0))
    assert ([topic.name for topic in last.topics], last.next_cursor) == ([names[-1]], None)


@pytest.mark.parametrize("cursor", [Cursor("z", 0), Cursor("b", -1)])
def test_a_cursor_that_cannot_be_is_refused(cursor):
    answers = MetadataAnswers(an_image(a_topic("b", 0)), "PLAINTEXT")
    with pytest.raises(KafkaError) as caught:
        answers.describe_topics(["b"], 10, cursor)
    assert caught.value.error_code is ErrorCode.INVALID_REQUEST
