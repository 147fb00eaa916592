"""Edge cases in which other brokers or clients have had bugs, on a whole broker.

tests/compat/test_same_answers.py asks Apache Kafka itself the same and more.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.running import RunningBroker
from broker.wire import WireClient, a_batch, a_fetch, a_produce, a_topic, the_row
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from odradek.records.batch import iterate_headers, renew_crc
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.record import Record, read_records

HOUR_MS = 3_600_000
CODECS = list(Codec)
COMPRESSED = CODECS[1:]
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[WireClient]:
    with WireClient(broker.address) as connected:
        yield connected


@pytest.fixture
def topic(client: WireClient, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = f"topic-{abs(hash(request.node.name))}"
    return create(client, name)


def create(client: WireClient, name: str, partitions: int = 1, **configs: str) -> str:
    (row,) = client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(name, partitions, **configs)).topics
    assert row.error_code == 0, row
    return name


def produce(client: WireClient, topic: str, batch: bytes | None, version: int = 9) -> Any:
    return the_row(client.ask(ApiKey.PRODUCE, version, a_produce(batch, topic)))


def values_in(row: Any) -> list[bytes | None]:
    raw = bytes(row.records)
    return [
        record.value
        for position, _ in iterate_headers(raw)
        for record in read_records(raw, position, max_bytes=1 << 24)
    ]


def alter(client: WireClient, topic: str, key: str, value: str | None, operation: int = SET) -> None:
    resources = IncrementalAlterConfigsRequest.Resources
    config = resources.Configs(name=key, config_operation=operation, value=value)
    asked = resources(resource_type=TOPIC, resource_name=topic, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[asked])
    (row,) = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert row.error_code == 0, row


def describe(client: WireClient, kind: int, name: str) -> dict[str, Any]:
    asked = DescribeConfigsRequest.Resources(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[asked])).results
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


# Fetch


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [4, 12])
def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(client, topic, codec, version):
    produce(client, topic, a_batch(b"a", b"b", b"c", codec=codec))
    produce(client, topic, a_batch(b"d", b"e", codec=codec))
    for offset, expected in {0: b"abcde", 1: b"abcde", 2: b"abcde", 3: b"de", 4: b"de", 5: b""}.items():
        row = the_row(client.ask(ApiKey.FETCH, version, a_fetch(topic, offset)))
        assert b"".join(values_in(row)) == expected


def test_the_first_batch_comes_though_it_is_larger_than_every_limit(client, topic):
    produce(client, topic, a_batch(bytes(100_000)))
    produce(client, topic, a_batch(b"second"))
    for limits in ({"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 0, "max_bytes": 0}):
        row = the_row(client.ask(ApiKey.FETCH, 12, a_fetch(topic, **limits)))
        assert values_in(row) == [bytes(100_000)]


def test_limits_cut_between_batches_only(client, topic):
    batch = a_batch(b"value")
    for _ in range(3):
        produce(client, topic, batch)
    for room, count in ((len(batch), 1), (2 * len(batch) - 1, 1), (2 * len(batch), 2), (1 << 20, 3)):
        row = the_row(client.ask(ApiKey.FETCH, 12, a_fetch(topic, partition_max_bytes=room)))
        assert values_in(row) == [b"value"] * count


# Produce


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_refuses_a_record_without_a_key(client, codec):
    topic = create(client, f"compacted-{codec.name}", cleanup_policy="compact")
    row = produce(client, topic, a_batch(b"a", b"b", key=None, codec=codec))
    assert (row.error_code, [one.batch_index for one in row.record_errors]) == (
        ErrorCode.INVALID_RECORD,
        [0, 1],
    )
    message = f"Compacted topic cannot accept message without key in topic partition {topic}-0"
    assert {one.batch_index_error_message for one in row.record_errors} == {message}
    mixed = [Record(0, -1, b"key", b"a"), Record(1, -1, None, b"b"), Record(2, -1, b"key", b"c")]
    row = produce(client, topic, bytes(build_batch(mixed, codec=codec)))
    assert (row.error_code, row.record_errors[0].batch_index) == (ErrorCode.INVALID_RECORD, 1)
    assert produce(client, topic, a_batch(b"a", key=b"", codec=codec)).base_offset == 0


def test_a_batch_larger_than_max_message_bytes_is_refused_as_the_topic_says_now(client):
    topic = create(client, "limited", max_message_bytes="1000")
    fitting, larger = a_batch(bytes(900)), a_batch(bytes(2000))
    assert len(fitting) <= 1000 < len(larger)
    assert produce(client, topic, fitting).error_code == 0
    assert produce(client, topic, larger).error_code == ErrorCode.MESSAGE_TOO_LARGE
    alter(client, topic, "max.message.bytes", "5000")
    wait_for(lambda: produce(client, topic, larger).error_code == 0)
    alter(client, topic, "max.message.bytes", None, DELETE)
    wait_for(lambda: produce(client, topic, a_batch(bytes(10_000))).error_code == 0)


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_too_far_away_is_refused_and_the_record_named(client, codec):
    limits = {"message_timestamp_before_max_ms": str(HOUR_MS), "message_timestamp_after_max_ms": str(HOUR_MS)}
    topic = create(client, f"timed-{codec.name}", **limits)
    now_ms = time.time_ns() // 1_000_000
    for minutes, is_good in ((-61, False), (-59, True), (0, True), (59, True), (61, False)):
        then_ms = now_ms + minutes * 60_000
        records = [Record(0, now_ms, None, b"a"), Record(1, then_ms, None, b"b")]
        row = produce(client, topic, bytes(build_batch(records, codec=codec)))
        assert row.error_code == (0 if is_good else ErrorCode.INVALID_TIMESTAMP)
        assert [error.batch_index for error in row.record_errors] == ([] if is_good else [1])


def test_a_topic_with_log_append_time_takes_any_time_and_reports_its_own(client):
    topic = create(client, "stamped", message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    row = produce(client, topic, a_batch(b"a", timestamp_ms=1))
    assert before_ms <= row.log_append_time_ms <= time.time_ns() // 1_000_000
    raw = bytes(the_row(client.ask(ApiKey.FETCH, 12, a_fetch(topic))).records)
    assert [record.timestamp_ms for record in read_records(raw, max_bytes=1000)] == [row.log_append_time_ms]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bytes_that_do_not_decompress_are_not_worth_sending_again(client, topic, codec):
    good = bytearray(a_batch(b"value" * 100, codec=codec))
    good[61:] = bytes(len(good) - 61)
    renew_crc(good, 0, len(good))
    assert produce(client, topic, bytes(good)).error_code == ErrorCode.INVALID_RECORD


def test_zstd_needs_a_version_that_knows_it(client, topic):
    batch = a_batch(b"value", codec=Codec.ZSTD)
    assert produce(client, topic, batch, 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, topic, batch, 7).error_code == 0


def test_a_transactional_batch_without_a_transaction_is_refused(client, topic):
    batch = a_batch(b"value", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert produce(client, topic, batch).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert bytes(the_row(client.ask(ApiKey.FETCH, 12, a_fetch(topic))).records) == b""


def test_null_records_are_refused(client, topic):
    assert produce(client, topic, None).error_code == ErrorCode.INVALID_RECORD
    nobody = ProduceRequest(acks=1, timeout_ms=1000)
    assert client.ask(ApiKey.PRODUCE, 9, nobody).responses == []


# What is served


def advertised(client: WireClient, version: int) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    rows = client.ask(ApiKey.API_VERSIONS, version, request).api_keys
    return {row.api_key: (row.min_version, row.max_version) for row in rows}


def test_produce_is_advertised_from_0_although_0_to_2_are_refused(broker, client):
    low, high = advertised(client, 3)[ApiKey.PRODUCE]
    assert (low, high) == (0, 13)
    for version in (0, 1, 2):
        with WireClient(broker.address) as old:
            old.send_bytes(struct.pack(">ihhih", 10, ApiKey.PRODUCE, version, 1, -1))
            assert old.is_closed_by_broker()


@pytest.mark.parametrize("version", range(5))
def test_the_answer_to_api_versions_has_the_oldest_header(client, version):
    body = ApiVersionsRequest()
    if version >= 3:
        body = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    asked = client.send(ApiKey.API_VERSIONS, version, body)
    frame = client.receive_frame()
    assert struct.unpack_from(">ih", frame) == (asked, 0)  # the error follows the correlation id at once


CLIENTS = {
    "kafkajs 2.2": {"PRODUCE": 7, "FETCH": 11, "METADATA": 6, "LIST_OFFSETS": 3, "JOIN_GROUP": 5},
    "aiokafka 0.14": {
        "PRODUCE": 8,
        "FETCH": 11,
        "METADATA": 5,
        "OFFSET_COMMIT": 3,
        "FIND_COORDINATOR": 1,
    },
    "Java 4": {
        "PRODUCE": 3,
        "FETCH": 4,
        "LIST_OFFSETS": 1,
        "OFFSET_COMMIT": 2,
        "OFFSET_FETCH": 1,
        "CREATE_TOPICS": 2,
        "DELETE_TOPICS": 1,
        "OFFSET_FOR_LEADER_EPOCH": 2,
        "DESCRIBE_CONFIGS": 1,
    },
    "librdkafka's zstd": {"PRODUCE": 7, "FETCH": 10},
    "librdkafka's new groups": {"OFFSET_COMMIT": 9, "OFFSET_FETCH": 9},
    "the newest with topic ids": {"PRODUCE": 13, "FETCH": 18, "METADATA": 13, "LIST_OFFSETS": 11},
}


@pytest.mark.parametrize("name", CLIENTS)
def test_the_versions_that_clients_need_are_there(client, name):
    served = advertised(client, 0)
    for api, version in CLIENTS[name].items():
        low, high = served[ApiKey[api]]
        assert low <= version <= high, api


# Metadata, offsets, admin


def test_asking_for_a_topic_makes_it_unless_the_client_declines(client):
    def ask(name: str, version: int, **fields: bool) -> Any:
        request = MetadataRequest(topics=[MetadataRequest.Topics(name=name)], **fields)
        (row,) = client.ask(ApiKey.METADATA, version, request).topics
        return row

    declined = ask("wanted", 9, allow_auto_topic_creation=False)
    assert declined.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for version, name in ((0, "old"), (4, "middle"), (13, "new")):
        made = ask(name, version)
        assert (made.error_code, len(made.partitions), made.partitions[0].leader_id) == (0, 1, 0)
        assert produce(client, name, a_batch(b"at once")).error_code == 0


def test_a_broker_may_decline_to_make_topics(tmp_path):
    with RunningBroker(tmp_path, "auto.create.topics.enable=false") as broker:
        request = MetadataRequest(topics=[MetadataRequest.Topics(name="wanted")])
        (row,) = broker.ask(ApiKey.METADATA, 9, request).topics
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def offsets(client: WireClient, topic: str, timestamp: int, version: int = 9) -> tuple[int, int, int]:
    asked = ListOffsetsRequest.Topics.Partitions(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.Topics(name=topic, partitions=[asked])]
    )
    (found,) = client.ask(ApiKey.LIST_OFFSETS, version, request).topics
    (row,) = found.partitions
    return row.error_code, row.offset, row.timestamp


def test_offsets_by_time_by_greatest_time_and_by_special_numbers(client):
    topic = create(client, "by-time", retention_ms="-1")
    for timestamp_ms in (1000, 3000, 2000):
        produce(client, topic, a_batch(b"a", b"b", timestamp_ms=timestamp_ms))
    expected = {
        -1: (0, 6, -1),
        -2: (0, 0, -1),
        -3: (0, 2, 3000),
        -4: (0, 0, -1),
        -5: (0, -1, -1),
        -6: (ErrorCode.UNSUPPORTED_VERSION, -1, -1),
        0: (0, 0, 1000),
        1000: (0, 0, 1000),
        1001: (0, 2, 3000),
        3000: (0, 2, 3000),
        3001: (0, -1, -1),
    }
    assert {timestamp: offsets(client, topic, timestamp) for timestamp in expected} == expected


@pytest.mark.parametrize(("special", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_time_is_refused_before_its_version(client, topic, special, since):
    for version in range(1, 12):
        expected = ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION
        assert offsets(client, topic, special, version)[0] == expected


def test_create_partitions_answers_with_a_row_for_each_topic(client):
    create(client, "grown", 2)
    create(client, "shrunk", 2)
    requested = {"grown": 4, "shrunk": 1, "unknown": 3}
    asked = [
        CreatePartitionsRequest.Topics(name=name, count=count, assignments=None)
        for name, count in requested.items()
    ]
    request = CreatePartitionsRequest(topics=asked, timeout_ms=20_000)
    rows = client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results
    assert {row.name: row.error_code for row in rows} == {
        "grown": ErrorCode.NONE,
        "shrunk": ErrorCode.INVALID_PARTITIONS,
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_creating_only_to_see_makes_nothing(broker, client):
    request = a_topic("only-seen", 3, retention_ms="1000")
    request.validate_only = True
    (row,) = client.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert (row.error_code, row.num_partitions) == (0, 3)
    names = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None)).topics
    assert "only-seen" not in {topic.name for topic in names}
    bad = CreateTopicsRequest.Topics(name="only-seen", num_partitions=1, replication_factor=9)
    request = CreateTopicsRequest(topics=[bad], validate_only=True, timeout_ms=1000)
    (row,) = client.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert row.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_lists_of_a_setting_are_appended_to_and_subtracted_from(client, topic):
    for operation, value, expected in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
    ):
        alter(client, topic, "cleanup.policy", value, operation)
        assert describe(client, TOPIC, topic)["cleanup.policy"].value == expected


def test_describe_configs_lists_everything_with_its_default(client, topic):
    topic_configs, broker_configs = describe(client, TOPIC, topic), describe(client, BROKER, "0")
    assert len(topic_configs) >= 30
    assert len(broker_configs) >= 200
    default = 5
    assert {config.config_source for config in topic_configs.values()} == {default}
    assert topic_configs["max.message.bytes"].value == "1048588"
    assert broker_configs["num.partitions"].config_source == default


def test_broker_0_is_a_broker(client):
    metadata = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None))
    assert [broker.node_id for broker in metadata.brokers] == [0]
    assert metadata.controller_id == 0


def wait_for(is_so: Any) -> None:
    """Settings reach the logs a moment after the answer."""
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
