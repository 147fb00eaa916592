"""How micro-batches are planned, on a cluster that is a dictionary of offsets."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from odradek.common.errors import ConfigError
from odradek.common.ids import TopicPartition
from odradek.spark.errors import DataLost, OtherSubscription
from odradek.spark.source.offsets import Offsets
from odradek.spark.source.stream import StreamReader

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class GivenCluster:
    def __init__(self, latest: Offsets) -> None:
        self.ends = latest
        self.starts = dict.fromkeys(latest, 0)
        self.written: Offsets = {}
        self.committed: list[tuple[str, Offsets]] = []

    def partitions(self) -> list[TopicPartition]:
        return sorted(self.ends)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {one: self.ends[one] for one in partitions}

    def log_ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {one: self.written.get(one, self.ends[one]) for one in partitions}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {one: self.starts.get(one, 0) for one in partitions}

    def commit(self, group_id: str, offsets: Offsets) -> None:
        self.committed.append((group_id, offsets))


class Time:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def a_reader(cluster: GivenCluster, time: Time | None = None, **options: Any) -> StreamReader:
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "a", **options}
    reader = StreamReader(
        {name: str(value) for name, value in given.items() if value != ""},
        StructType().add("value", "binary"),
        time or Time(),
    )
    reader._made = cluster  # type: ignore[assignment]
    return reader


def test_a_micro_batch_has_as_many_offsets_as_the_limit_says() -> None:
    cluster = GivenCluster({A0: 100, A1: 50})
    reader = a_reader(cluster, maxOffsetsPerTrigger=30)
    assert reader.getDefaultReadLimit() == ReadMaxRows(30)
    start = {"a": {"0": 10, "1": 50}}
    assert reader.latestOffset(start, ReadMaxRows(30)) == {"a": {"0": 40, "1": 50}}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"a": {"0": 100, "1": 50}}
    assert reader.reportLatestOffset() == {"a": {"0": 100, "1": 50}}


def test_a_micro_batch_waits_for_enough_but_not_for_ever() -> None:
    cluster, time = GivenCluster({A0: 100}), Time()
    reader = a_reader(cluster, time, minOffsetsPerTrigger=20, maxTriggerDelay="30s")
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset({"a": {"0": 95}}, limit) == {"a": {"0": 100}}  # the first one at once
    cluster.ends[A0] = 110
    assert reader.latestOffset({"a": {"0": 100}}, limit) == {"a": {"0": 100}}
    time.now_s += 31
    assert reader.latestOffset({"a": {"0": 100}}, limit) == {"a": {"0": 110}}
    cluster.ends[A0] = 130
    assert reader.latestOffset({"a": {"0": 110}}, limit) == {"a": {"0": 130}}


def test_available_now_ends_where_the_log_ended_and_does_not_wait() -> None:
    cluster = GivenCluster({A0: 100})
    reader = a_reader(cluster, minOffsetsPerTrigger=1000)
    reader.prepareForTriggerAvailableNow()
    cluster.ends |= {A0: 200, A1: 7}
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset({"a": {"0": 90}}, limit) == {"a": {"0": 100}}
    assert reader.latestOffset({"a": {"0": 100}}, limit) == {"a": {"0": 100}}


def test_new_partitions_begin_with_their_first_record() -> None:
    cluster = GivenCluster({A0: 10, A1: 6})
    reader = a_reader(cluster, maxOffsetsPerTrigger=4)
    end = reader.latestOffset({"a": {"0": 8}}, ReadMaxRows(4))
    assert end == {"a": {"0": 9, "1": 3}}
    parts = [part.wanted for part in reader.partitions({"a": {"0": 8}}, end)]
    assert parts == [(A0, 8, 9), (A1, 0, 3)]


@pytest.mark.parametrize(
    ("ends", "problem"),
    [({A0: 4}, "a-0 ends at offset 4, and was read up to 8"), ({A1: 3}, "a-0 does not exist any more")],
)
def test_lost_records_end_the_query_unless_they_may_be_lost(ends: Offsets, problem: str) -> None:
    start = {"a": {"0": 8}}
    with pytest.raises(DataLost, match=problem):
        a_reader(GivenCluster(ends)).latestOffset(start, ReadAllAvailable())
    ended = a_reader(GivenCluster(ends))
    ended.prepareForTriggerAvailableNow()
    with pytest.raises(DataLost, match=problem):
        ended.latestOffset(start, ReadAllAvailable())
    end = a_reader(GivenCluster(ends), failOnDataLoss=False).latestOffset(start, ReadAllAvailable())
    assert end == ({"a": {"0": 4}} if A0 in ends else {"a": {"1": 3}})


@pytest.mark.parametrize(
    ("subscription", "said"),
    [
        ({"subscribe": "a"}, "subscribe=a"),
        ({"subscribe": "", "subscribePattern": "a|c.+"}, "subscribePattern=a|c.+"),
        ({"subscribe": "", "assign": '{"a": [0], "b": [1]}'}, "assign=a-0,b-1"),
    ],
)
def test_the_checkpoint_of_other_topics_is_not_taken_for_deleted_topics(
    subscription: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    start = {"a": {"0": 8}, "b": {"0": 3}}
    with pytest.raises(OtherSubscription) as refused:
        a_reader(GivenCluster({A0: 8}), **subscription).latestOffset(start, ReadAllAvailable())
    assert str(refused.value) == (
        f"the checkpoint has offsets of b-0, which {said} does not read: give this query a checkpoint of "
        "its own, or subscribe to what its checkpoint has"
    )
    reader = a_reader(GivenCluster({A0: 9}), failOnDataLoss=False, **subscription)
    assert reader.latestOffset(start, ReadAllAvailable()) == {"a": {"0": 9}}
    assert "has offsets of b-0" in caplog.text


def test_a_topic_that_is_subscribed_and_gone_is_not_taken_for_another() -> None:
    start = {"a": {"0": 8}, "b": {"0": 3}}
    with pytest.raises(DataLost, match="b-0 does not exist any more"):
        a_reader(GivenCluster({A0: 8}), subscribe="a,b").latestOffset(start, ReadAllAvailable())


@pytest.mark.parametrize("is_available_now", [False, True])
def test_a_topic_that_was_created_again_is_read_from_its_first_record(is_available_now: bool) -> None:
    cluster = GivenCluster({A0: 5})
    cluster.starts[A0] = 1
    reader = a_reader(cluster, failOnDataLoss=False, maxOffsetsPerTrigger=3)
    if is_available_now:
        reader.prepareForTriggerAvailableNow()
    start, read = {"a": {"0": 8}}, []
    while (end := reader.latestOffset(start, ReadMaxRows(3))) != start:
        read += [part.wanted for part in reader.partitions(start, end)]
        start = end
    assert read == [(A0, 1, 4), (A0, 4, 5)]


def test_an_open_transaction_does_not_make_a_log_shorter() -> None:
    cluster = GivenCluster({A0: 5})
    cluster.written[A0] = 9
    for reader in (a_reader(cluster), a_reader(cluster, failOnDataLoss=False)):
        assert reader.latestOffset({"a": {"0": 8}}, ReadAllAvailable()) == {"a": {"0": 8}}


def test_a_new_partition_that_has_lost_its_first_records_is_reported() -> None:
    cluster = GivenCluster({A0: 8, A1: 6})
    cluster.starts[A1] = 2
    start, end = {"a": {"0": 8}}, {"a": {"0": 8, "1": 6}}
    with pytest.raises(DataLost, match="the new partition a-1 begins at offset 2"):
        a_reader(cluster).partitions(start, end)
    (part,) = a_reader(cluster, failOnDataLoss=False).partitions(start, end)
    assert part.wanted == (A1, 2, 6)


def test_offsets_are_committed_for_the_group_once() -> None:
    cluster = GivenCluster({A0: 10})
    reader = a_reader(cluster, **{"kafka.group.id": "g"})
    reader.latestOffset({"a": {"0": 4}}, ReadAllAvailable())
    reader.commit({"a": {"0": 4}})
    reader.latestOffset({"a": {"0": 10}}, ReadAllAvailable())
    assert cluster.committed == [("g", {A0: 4}), ("g", {A0: 10})]


def test_a_reader_that_is_sent_to_tasks_leaves_its_connections_behind() -> None:
    reader = a_reader(GivenCluster({A0: 10}))
    sent = pickle.loads(pickle.dumps(StreamReader(reader._given, reader._schema)))
    assert sent.options == reader.options
    assert sent._made is None


def test_wrong_options_are_reported_at_the_first_call() -> None:
    with pytest.raises(ConfigError, match="give one of the options"):
        StreamReader({"kafka.bootstrap.servers": "a:1"}, StructType()).initialOffset()
