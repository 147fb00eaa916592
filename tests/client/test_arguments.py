"""What users give to methods: the right thing passes, a wrong one is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek import TopicPartition
from odradek.client.arguments import seconds, topic_name, topic_names, topic_partition, topic_partitions
from odradek.common.errors import KafkaError


def test_what_is_right_passes() -> None:
    assert topic_name("t") == "t"
    assert topic_names({"t"}) == ["t"]
    assert topic_partition(("t", 0)) == TopicPartition("t", 0)
    assert topic_partitions(iter([("t", 0)])) == [TopicPartition("t", 0)]
    assert seconds(1) == 1


@pytest.mark.parametrize(
    ("check", "given", "error", "sentence"),
    [
        (topic_name, None, TypeError, "a topic is a str, not None"),
        (topic_name, b"t", TypeError, "a topic is a str, not b't'"),
        (topic_name, "a/b", KafkaError, "a/b"),
        (topic_names, "t", TypeError, r"a list of topics: \['t'\]"),
        (topic_names, None, TypeError, "a list of topics, not None"),
        (topic_names, [1], TypeError, "a topic is a str, not 1"),
        (topic_partition, "t", TypeError, r"TopicPartition\(topic, number\), not 't'"),
        (topic_partition, ("t", "0"), TypeError, r"\('t', '0'\) is not a number from 0 on"),
        (topic_partition, ("t", -1), TypeError, "not a number from 0 on"),
        (topic_partition, ("t", True), TypeError, "not a number from 0 on"),
        (topic_partition, ("a/b", 0), KafkaError, "a/b"),
        (topic_partitions, TopicPartition("t", 0), TypeError, "a list of TopicPartition"),
        (topic_partitions, "t", TypeError, "a list of TopicPartition"),
        (topic_partitions, 5, TypeError, "a list of TopicPartition"),
        (seconds, "1", TypeError, "a number of seconds, not '1'"),
        (seconds, None, TypeError, "a number of seconds, not None"),
        (seconds, True, TypeError, "a number of seconds, not True"),
    ],
)
def test_what_is_wrong_is_named(
    check: Callable[[Any], Any], given: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        check(given)
