"""The client's side of a fetch session, against a broker that remembers what it was told."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from odradek.client.consumer.fetch.fetch_session import FetchSessionHandler, PartitionFetch, SessionRequest
from odradek.common.ids import TopicPartition

ID, OTHER_ID = bytes(16), bytes([1] * 16)
ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)


def wanted(offset: int, topic_id: bytes = ID) -> PartitionFetch:
    return PartitionFetch(topic_id, offset, 0, 1000)


def test_the_first_fetch_names_all_and_the_next_only_what_changed() -> None:
    session = FetchSessionHandler()
    assert session.next_request({ONE: wanted(0), TWO: wanted(0)}) == SessionRequest(
        0, 0, {ONE: wanted(0), TWO: wanted(0)}, {}
    )
    session.on_response(77)

    assert session.next_request({ONE: wanted(5), TWO: wanted(0)}) == SessionRequest(
        77, 1, {ONE: wanted(5)}, {}
    )
    session.on_response(77)
    assert session.next_request({ONE: wanted(5)}) == SessionRequest(77, 2, {}, {TWO: ID})


def test_a_topic_created_again_is_forgotten_and_named() -> None:
    session = FetchSessionHandler()
    session.next_request({ONE: wanted(5)})
    session.on_response(77)

    asked = session.next_request({ONE: wanted(0, OTHER_ID)})

    assert (asked.named, asked.forgotten) == ({ONE: wanted(0, OTHER_ID)}, {ONE: ID})


def test_without_a_session_everything_is_said_each_time() -> None:
    session = FetchSessionHandler()
    for _ in range(3):
        assert session.next_request({ONE: wanted(0)}) == SessionRequest(0, 0, {ONE: wanted(0)}, {})
        session.on_response(0)


def test_after_an_error_the_session_begins_again() -> None:
    session = FetchSessionHandler()
    session.next_request({ONE: wanted(0)})
    session.on_response(77)
    session.restart()
    assert session.next_request({ONE: wanted(0)}) == SessionRequest(77, 0, {ONE: wanted(0)}, {})
    session.restart(is_known=False)
    assert session.next_request({ONE: wanted(0)}).session_id == 0


class RememberingBroker:
    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: dict[TopicPartition, PartitionFetch] = {}

    def fetch(self, asked: SessionRequest) -> int | None:
        """The session, or None for an epoch that is not the next."""
        if asked.epoch == 0:
            self.partitions, self.epoch = dict(asked.named), 1
            return 5
        if (asked.session_id, asked.epoch) != (5, self.epoch):
            return None
        for partition in asked.forgotten:
            del self.partitions[partition]
        self.partitions.update(asked.named)
        self.epoch += 1
        return 5


PARTITIONS = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2))
WANTED = st.builds(
    PartitionFetch, st.sampled_from([ID, OTHER_ID]), st.integers(0, 3), st.just(0), st.just(1000)
)
FATES = st.sampled_from(["answered", "request lost", "answer lost"])


@given(rounds=st.lists(st.tuples(st.dictionaries(PARTITIONS, WANTED), FATES), max_size=20))
def test_whatever_gets_lost_an_answered_fetch_is_about_what_was_wanted(
    rounds: list[tuple[dict[TopicPartition, PartitionFetch], str]],
) -> None:
    session, broker = FetchSessionHandler(), RememberingBroker()
    for partitions, fate in rounds:
        asked = session.next_request(partitions)
        if fate == "request lost":
            session.restart(is_known=False)
            continue
        reported = broker.fetch(asked)
        if fate == "answer lost" or reported is None:
            session.restart(is_known=False)
            continue
        assert broker.partitions == partitions
        session.on_response(reported)
