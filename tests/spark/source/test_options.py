"""The options of the source, without Spark and without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client.errors import ClientError
from odradek.common.errors import ConfigError
from odradek.common.ids import TopicPartition
from odradek.spark.errors import ReadFailed
from odradek.spark.source.cluster import ClusterOffsets
from odradek.spark.source.offsets import Bound, BoundKind
from odradek.spark.source.options import source_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
OF_A = {**SERVERS, "subscribe": "a"}
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    batch, stream = source_options(OF_A, is_stream=False), source_options(OF_A, is_stream=True)
    assert (batch.start.kind, batch.end.kind) == (BoundKind.EARLIEST, BoundKind.LATEST)
    assert stream.start.kind is BoundKind.LATEST
    assert batch.fails_on_data_loss
    assert not batch.reads_committed


def test_options_without_effect_say_so_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    source_options({**SERVERS, "subscribe": "a"}, is_stream=True)
    assert not caplog.messages
    given = {"subscribe": "a", "groupIdPrefix": "p", "useDeprecatedOffsetFetching": "false"}
    source_options({**SERVERS, **given}, is_stream=True)
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the option groupIdPrefix has no effect",
        "the option useDeprecatedOffsetFetching has no effect",
    ]


def test_a_failed_question_for_offsets_is_asked_again_as_often_as_said() -> None:
    waits: list[float] = []

    class NoAnswers:
        asked = 0

        def list_offsets(self, *_: Any, **__: Any) -> None:
            self.asked += 1
            raise ClientError("no answer")

    def asked(**given: str) -> int:
        options = source_options({**SERVERS, "subscribe": "a", **given}, is_stream=True)
        cluster, admin = ClusterOffsets(options, waits.append), NoAnswers()
        cluster._made = admin  # type: ignore[assignment]
        with pytest.raises(ReadFailed, match="no answer"):
            cluster.latest([TopicPartition("a", 0)])
        return admin.asked

    assert asked() == 1
    assert asked(**{"fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "700"}) == 3
    assert waits == [0.7, 0.7]
    assert asked(**{"fetchOffset.numRetries": "1"}) == 2
    assert waits[2:] == [0.01]


def test_names_count_without_case_and_settings_go_to_the_consumer() -> None:
    given = {
        **SERVERS,
        "SUBSCRIBE": " a, b ,a",
        "kafka.isolation.level": "read_committed",
        "Kafka.Fetch.Max.Wait.Ms": "7",
        "kafka.group.id": "g",
        "kafka.acks": "all",  # of the producer: a table has one set of options
        "topic": "t",
    }
    options = source_options(given, is_stream=True)
    assert options.subscription.topics == ("a", "b")
    assert dict(options.consumer) == {
        "bootstrap_servers": "localhost:9092",
        "isolation_level": "read_committed",
        "fetch_max_wait_ms": "7",
    }
    assert options.group_id == "g"
    assert options.reads_committed


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ({"startingOffsets": "Latest"}, Bound(BoundKind.LATEST)),
        ({"startingOffsets": '{"a": {"1": -2, "0": 5}}'}, Bound(BoundKind.OFFSETS, ((A0, 5), (A1, -2)))),
        ({"startingOffsetsByTimestamp": '{"a": {"0": 5}}'}, Bound(BoundKind.TIMES, ((A0, 5),))),
        (
            {"startingTimestamp": "7", "startingOffsets": "latest", "startingOffsetsByTimestamp": "x"},
            Bound(BoundKind.TIME, time_ms=7),
        ),
    ],
)
def test_a_time_wins_over_times_and_times_over_offsets(given: dict[str, str], bound: Bound) -> None:
    assert source_options({**OF_A, **given}, is_stream=True).start == bound


@pytest.mark.parametrize(("text", "ms"), [("90", 90), ("30s", 30_000), ("15 m", 900_000), ("1h", 3_600_000)])
def test_a_delay_is_a_duration(text: str, ms: int) -> None:
    assert source_options({**OF_A, "maxTriggerDelay": text}, is_stream=True).max_trigger_delay_ms == ms


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"subscribe": "a"}, "the option kafka.bootstrap.servers is missing"),
        (SERVERS, "give one of the options subscribe, subscribePattern, assign; there is none"),
        ({**OF_A, "assign": "{}"}, "there are subscribe and assign"),
        ({**SERVERS, "subscribe": " ,"}, "the option subscribe is empty"),
        ({**SERVERS, "subscribePattern": "a("}, "is no regular expression"),
        ({**SERVERS, "assign": '{"a": ["0"]}'}, "it must be like"),
        ({**SERVERS, "assign": "a"}, "it must be like"),
        ({**OF_A, "startingOffset": "latest"}, "did you mean startingOffsets?"),
        ({**OF_A, "startingOffsets": "first"}, "it must be earliest, latest, or like"),
        ({**OF_A, "startingOffsets": '{"a": {"0": "5"}}'}, "it must be earliest, latest, or like"),
        ({**OF_A, "startingOffsets": '{"a": {"0": -3}}'}, "it must be earliest, latest, or like"),
        ({**OF_A, "startingOffsets": "latest"}, "a batch cannot start at latest"),
        ({**OF_A, "startingOffsets": '{"a": {"0": -1}}'}, "a batch cannot start at latest"),
        ({**OF_A, "endingOffsets": "earliest"}, "a batch cannot end at earliest"),
        ({**OF_A, "startingTimestamp": "now"}, "must be an integer of at least 0"),
        ({**OF_A, "startingOffsetsByTimestampStrategy": "skip"}, "it must be error or latest"),
        ({**OF_A, "minPartitions": "0"}, "must be an integer of at least 1"),
        ({**OF_A, "failOnDataLoss": "no"}, "it must be true or false"),
        ({**OF_A, "maxTriggerDelay": "soon"}, "it must be a duration such as 30s"),
        ({**OF_A, "maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "is less than"),
        ({**OF_A, "kafka.auto.offset.reset": "latest"}, "use the option startingOffsets"),
        ({**OF_A, "kafka.enable.auto.commit": "true"}, "committed after each micro-batch"),
        ({**OF_A, "kafka.value.deserializer": "x"}, "cast it"),
        ({**OF_A, "kafka.fetch.max.byte": "1"}, "did you mean fetch_max_bytes?"),
        ({**OF_A, "kafka.isolation.level": "committed"}, "isolation.level"),
        ({**OF_A, "kafka.security.protocol": "SASL_SSL"}, "PLAINTEXT only"),
    ],
)
def test_wrong_options_are_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        source_options(given, is_stream=False)
    assert problem in str(refused.value)


def test_a_stream_has_no_end() -> None:
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        with pytest.raises(ConfigError, match="a stream has no end"):
            source_options({**OF_A, name: "latest"}, is_stream=True)
