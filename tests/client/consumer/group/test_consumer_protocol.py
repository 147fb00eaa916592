"""The consumer protocol of classic groups: read back as written, and readable for Java's clients."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.assignors.subscription import Subscription
from odradek.client.consumer.group.consumer_protocol import (
    ASSIGNORS,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from odradek.common.ids import TopicPartition
from odradek.protocol.errors import ProtocolError

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 99))
SUBSCRIPTIONS = st.builds(
    Subscription,
    topics=st.frozensets(st.sampled_from(["a", "b", "ü"])),
    owned=st.frozensets(PARTITIONS).map(lambda owned: tuple(sorted(owned))),
    generation_id=st.integers(-1, 2**31 - 1),
)


@given(subscription=SUBSCRIPTIONS, assignor=st.sampled_from(sorted(ASSIGNORS)))
def test_a_subscription_is_read_as_it_was_written(subscription: Subscription, assignor: str) -> None:
    assert read_subscription(assignor, write_subscription(assignor, subscription, None), None) == subscription


@given(partitions=st.frozensets(PARTITIONS))
def test_an_assignment_is_read_as_it_was_written(partitions: frozenset[TopicPartition]) -> None:
    assert read_assignment(write_assignment(partitions)) == partitions


def test_no_assignment_is_nothing() -> None:
    assert read_assignment(b"") == frozenset()


def test_the_bytes_begin_as_every_version_does() -> None:
    ours = write_subscription("range", Subscription(frozenset({"b", "a"})), None)

    version, topics, no_user_data = b"\0\3", b"\0\0\0\2" + b"\0\1a" + b"\0\1b", b"\xff\xff\xff\xff"
    assert ours.startswith(version + topics + no_user_data)


def test_user_data_that_lies_is_refused() -> None:
    written = bytearray(write_subscription("sticky", Subscription(frozenset({"a"})), None))
    assert b"\x00\x00\x00\x00\xff\xff\xff\xff" in written
    lying = written.replace(b"\x00\x00\x00\x00\xff\xff\xff\xff", b"\x7f\x00\x00\x00\xff\xff\xff\xff", 1)
    with pytest.raises(ProtocolError):
        read_subscription("sticky", bytes(lying), None)
