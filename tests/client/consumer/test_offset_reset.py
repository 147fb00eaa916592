"""Where reading begins without an offset."""

from __future__ import annotations

import time

import pytest

from odradek import Consumer, Producer, TopicPartition
from odradek.client.consumer.offset_reset import duration_ms, time_to_begin
from odradek.client.consumer.positions import EARLIEST, LATEST
from odradek.testing import Cluster

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("P1D", 24 * HOUR_MS),
        ("PT1H", HOUR_MS),
        ("P1DT2H3M4.5S", 26 * HOUR_MS + 184_500),
        ("PT0S", 0),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("1D", None),
        ("-PT1H", None),
        ("P1Y", None),
        ("", None),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text: str, length_ms: int | None) -> None:
    assert duration_ms(text) == length_ms


def test_a_reset_policy_is_the_timestamp_of_a_list_offsets_request() -> None:
    policies = ["earliest", "latest", "none", "by_duration:PT1H", "by_duration:soon"]

    assert [time_to_begin(policy, 2 * HOUR_MS) for policy in policies] == [
        EARLIEST,
        LATEST,
        None,
        HOUR_MS,
        None,
    ]


@pytest.mark.parametrize(("duration", "offset"), [("PT2H", 1), ("PT1M", 3)])
def test_reading_begins_with_what_is_young_enough(
    cluster: Cluster, topic: str, duration: str, offset: int
) -> None:
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for age_hours in (10, 1, 1):
            producer.send(topic, b"v", partition=0, timestamp=now_ms - age_hours * HOUR_MS)
    with Consumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset=f"by_duration:{duration}"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == offset
