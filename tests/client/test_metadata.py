from __future__ import annotations

from odradek.client.metadata import Metadata
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import MetadataResponse

ORDERS = TopicPartition("orders", 0)
ONE, TWO = b"1" * 16, b"2" * 16


def a_topic(
    leader: int = 0, epoch: int = 5, topic_id: bytes = ONE, error: int = 0
) -> MetadataResponse.Topics:
    partition = MetadataResponse.Topics.Partitions(
        partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[0, 1], isr_nodes=[0, 1]
    )
    return MetadataResponse.Topics(
        name="orders", topic_id=topic_id, error_code=error, partitions=[] if error else [partition]
    )


def an_answer(*topics: MetadataResponse.Topics, nodes: tuple[int, ...] = (0, 1)) -> MetadataResponse:
    brokers = [MetadataResponse.Brokers(node_id=node, host="h", port=9000 + node) for node in nodes]
    return MetadataResponse(brokers=brokers, topics=list(topics), controller_id=0, cluster_id="c")


def after(*answers: MetadataResponse) -> Metadata:
    metadata = Metadata()
    metadata.want(["orders"])
    for answer in answers:
        metadata.request()
        metadata.update(answer, now_ms=1000)
    return metadata


def leader_of(metadata: Metadata) -> tuple[int, int]:
    view = metadata.leader(ORDERS)
    assert view is not None
    return view.leader_id, view.leader_epoch


def test_a_view_never_goes_back_to_an_earlier_leader():
    metadata = after(an_answer(a_topic(leader=1, epoch=6)), an_answer(a_topic(leader=0, epoch=5)))
    assert leader_of(metadata) == (1, 6)


def test_a_topic_created_again_begins_its_epochs_again():
    metadata = after(an_answer(a_topic(epoch=6)), an_answer(a_topic(leader=1, epoch=0, topic_id=TWO)))
    assert leader_of(metadata) == (1, 0)
    assert metadata.names == {TWO: "orders"}


def test_a_topic_that_is_gone_is_an_error():
    metadata = after(
        an_answer(a_topic()),
        an_answer(a_topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic_id=bytes(16))),
    )
    assert metadata.topics == {}
    assert metadata.names == {}
    assert metadata.errors == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_there_is_no_leader_when_the_leader_is_not_among_the_brokers():
    assert after(an_answer(a_topic(leader=7))).leader(ORDERS) is None


def test_a_leader_named_in_another_response_is_used_if_it_is_newer():
    metadata = after(an_answer(a_topic(leader=0, epoch=5)))
    assert not metadata.take_leader(ORDERS, 1, 5)
    assert metadata.take_leader(ORDERS, 1, 6)
    assert leader_of(metadata) == (1, 6)


def test_a_view_is_renewed_when_it_is_old_or_doubted_or_too_small():
    metadata = after(an_answer(a_topic()))
    assert not metadata.needs_refresh(1500, max_age_ms=1000)
    assert metadata.needs_refresh(2000, max_age_ms=1000)
    metadata.want(["orders"])
    assert not metadata.is_stale
    metadata.want(["payments"])
    assert metadata.is_stale


def test_a_doubt_that_comes_after_the_question_is_not_settled_by_its_answer():
    metadata = Metadata()
    metadata.request()
    metadata.want(["orders"])
    metadata.update(an_answer(), now_ms=0)
    assert metadata.is_stale


def test_a_view_of_all_topics_loses_deleted_ones():
    metadata = Metadata()
    metadata.want_all()
    metadata.update(an_answer(a_topic()), 0)
    assert metadata.request().topics is None
    metadata.update(an_answer(), 0)
    assert metadata.topics == {}


def test_a_topic_is_held_as_long_as_anybody_holds_or_wants_it():
    metadata = Metadata()
    with metadata.holding(["orders"]):
        with metadata.holding(["orders"]):
            metadata.request()
            metadata.update(an_answer(a_topic()), 0)
        assert metadata.leader(ORDERS) is not None
        assert not metadata.is_stale
    assert metadata.leader(ORDERS) is None
    assert metadata.request().topics == []


def test_a_topic_that_is_wanted_stays_when_it_is_held_no_more():
    metadata = after(an_answer(a_topic()))
    with metadata.holding(["orders"]):
        assert not metadata.is_stale
    assert metadata.leader(ORDERS) is not None
