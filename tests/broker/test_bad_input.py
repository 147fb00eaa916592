"""Input that no client should send: an answer or a closed connection, a line in the log, no harm to others.

Every test runs beside a client that goes on producing and reading, and within a bound of memory.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from broker.wire import (
    ClosedByBroker,
    WireClient,
    a_batch,
    a_fetch,
    a_produce,
    a_topic,
    request_frame,
    the_row,
)
from faults.broker_process import BrokerProcess, wait_until
from faults.neighbours import Neighbour
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from odradek.records.compression import Codec

MEGABYTE = 1 << 20
MANY = 100_000
PATIENCE_SECONDS = 10.0  # how long a neighbour may wait on a busy machine


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process


@pytest.fixture(scope="module")
def neighbour(broker: BrokerProcess) -> Iterator[Neighbour]:
    with Neighbour(broker.address) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_harm_to_others(broker: BrokerProcess, neighbour: Neighbour) -> Iterator[None]:
    neighbour.assert_undisturbed(PATIENCE_SECONDS)
    yield
    neighbour.assert_undisturbed(PATIENCE_SECONDS)
    assert "Unexpected error in" not in broker.log()
    assert "Traceback" not in broker.log()


@pytest.fixture
def logged(broker: BrokerProcess) -> Callable[[str], None]:
    """Waits for a line in the part of the log that this test has caused."""
    start = len(broker.log())

    def wait_for(line: str) -> None:
        wait_until(lambda: line in broker.log()[start:], f"the log says {line!r}")

    return wait_for


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[WireClient]:
    with WireClient(broker.address) as connected:
        yield connected


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


# Bytes that are no request


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "looks like HTTP"),
        (struct.pack(">i", 2**31 - 1), "a frame of 2147483647 bytes; at most 104857600 are allowed"),
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (struct.pack(">i", -(2**31)), "a frame of -2147483648 bytes"),
        (framed(b""), "a request of 0 bytes has no header"),
        (framed(b"\0\3"), "a request of 2 bytes has no header"),
        (framed(struct.pack(">hhih", 999, 0, 1, -1)), "there is no API with key 999"),
        (framed(struct.pack(">hhih", -1, 0, 1, -1)), "there is no API with key -1"),
        (framed(struct.pack(">hhih", 0, 2, 1, -1)), "asked for PRODUCE v2; served: versions 3-"),
        (framed(struct.pack(">hhih", 1, 3, 1, -1)), "asked for FETCH v3; served: versions 4-"),
        (framed(struct.pack(">hhih", 3, 99, 1, -1)), "asked for METADATA v99"),
        (framed(struct.pack(">hhih", 3, -1, 1, -1)), "asked for METADATA v-1"),
        (framed(struct.pack(">hhih", 3, 4, 1, -2)), "sent a bad request"),
        (framed(struct.pack(">hhih", 3, 4, 1, 500) + b"x"), "sent a bad request"),
        (framed(struct.pack(">hhih", 3, 4, 1, 2) + b"\xff\xfe"), "sent a bad request"),
        (framed(struct.pack(">hhihi", 3, 4, 1, -1, 2**31 - 1)), "sent a bad request"),
        (framed(struct.pack(">hhihi", 3, 4, 1, -1, -2)), "sent a bad request"),
        (framed(struct.pack(">hhihi", 3, 4, 1, -1, 10**6)), "sent a bad request"),
        (framed(struct.pack(">hhihB", 3, 9, 1, -1, 0) + b"\xff" * 12), "sent a bad request"),
    ],
)
def test_what_is_no_request_ends_the_connection_and_is_reported(client, logged, sent, line):
    client.send_bytes(sent)
    assert client.is_closed_by_broker()
    logged(line)


def test_random_bytes_end_their_connections(broker):
    random = Random(7)
    for size in (4, 50, 5000, 300_000):
        with WireClient(broker.address) as client:
            try:
                client.send_bytes(b"\x00\x00" + random.randbytes(size))
                client.socket.shutdown(socket.SHUT_WR)
            except OSError:
                continue  # it was quicker
            assert client.is_closed_by_broker()


def test_a_tls_client_is_distinguished(broker, logged):
    context = ssl.create_default_context()
    with (
        socket.create_connection(("127.0.0.1", broker.port)) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(plain, server_hostname="localhost")
    logged("looks like TLS")


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client):
    client.send_bytes(framed(struct.pack(">hhih", 18, 99, 42, -1) + b"whatever a later version holds"))
    frame = client.receive_frame()
    correlation_id, error_code, count, api_key, low, high = struct.unpack_from(">ihihhh", frame)
    assert (correlation_id, error_code, count, len(frame)) == (42, ErrorCode.UNSUPPORTED_VERSION, 1, 16)
    assert (api_key, low, high) == (ApiKey.API_VERSIONS, 0, 4)
    assert client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


def test_answers_before_the_bad_bytes_are_still_given(client):
    good = request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    client.send_bytes(good)
    assert client.receive(ApiKey.API_VERSIONS, 0).error_code == 0
    client.send_bytes(b"\xff\xff\xff\xff")
    assert client.is_closed_by_broker()


# Much of it


def test_half_frames_held_open_cost_what_was_sent_and_not_what_was_claimed(broker):
    count = 400
    before = broker.resident_bytes()
    clients = [WireClient(broker.address) for _ in range(count)]
    for client in clients:
        client.send_bytes(struct.pack(">i", 100 * MEGABYTE) + bytes(10_000))
    with WireClient(broker.address) as late:
        assert late.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    assert broker.resident_bytes() - before < count * 150_000
    for client in clients:
        client.socket.close()


def test_a_byte_at_a_time_is_slow_and_served(client):
    for byte in request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()):
        client.send_bytes(bytes([byte]))
        time.sleep(0.005)
    assert client.receive(ApiKey.API_VERSIONS, 0).error_code == 0


def unknown_topics(count: int) -> list[MetadataRequest.Topics]:
    return [MetadataRequest.Topics(name=f"unknown-{number}") for number in range(count)]


def ask_metadata(client: WireClient) -> set[int]:
    request = MetadataRequest(topics=unknown_topics(MANY), allow_auto_topic_creation=False)
    return {topic.error_code for topic in client.ask(ApiKey.METADATA, 9, request).topics}


def ask_offsets(client: WireClient) -> set[int]:
    rows = [ListOffsetsRequest.Topics.Partitions(partition_index=n, timestamp=-1) for n in range(MANY)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.Topics(name="unknown", partitions=rows)]
    )
    (topic,) = client.ask(ApiKey.LIST_OFFSETS, 7, request).topics
    return {row.error_code for row in topic.partitions}


def ask_fetch(client: WireClient) -> set[int]:
    wanted = FetchRequest.Topics.Partitions
    rows = [wanted(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in range(MANY)]
    request = FetchRequest(
        min_bytes=1, max_bytes=1000, topics=[FetchRequest.Topics(topic="unknown", partitions=rows)]
    )
    (topic,) = client.ask(ApiKey.FETCH, 12, request).responses
    return {row.error_code for row in topic.partitions}


def ask_deletion(client: WireClient) -> set[int]:
    request = DeleteTopicsRequest(
        topic_names=[f"unknown-{number}" for number in range(MANY)], timeout_ms=1000
    )
    rows = client.ask(ApiKey.DELETE_TOPICS, 5, request).responses
    return {row.error_code for row in rows} - {ErrorCode.REQUEST_TIMED_OUT}


def ask_growth(client: WireClient) -> set[int]:
    topics = [CreatePartitionsRequest.Topics(name=f"unknown-{n}", count=2) for n in range(MANY)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1000)
    rows = client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results
    return {row.error_code for row in rows} - {ErrorCode.REQUEST_TIMED_OUT}


def ask_configs(client: WireClient) -> set[int]:
    topics = [DescribeConfigsRequest.Resources(resource_type=2, resource_name=f"u-{n}") for n in range(MANY)]
    rows = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=topics)).results
    return {row.error_code for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("ask", [ask_metadata, ask_offsets, ask_fetch, ask_deletion, ask_growth, ask_configs])
def test_a_hundred_thousand_names_in_one_request_are_answered_one_by_one(broker, client, ask):
    broker.forget_peak()
    before = broker.resident_bytes()
    assert ask(client) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert broker.peak_bytes() - before < 400 * MEGABYTE


@pytest.mark.slow
def test_a_hundred_thousand_new_topics_are_not_made_by_one_question(tmp_path):
    """On a broker of its own, since some of the topics are made."""
    with BrokerProcess(tmp_path) as broker, Neighbour(broker.address) as neighbour:
        with WireClient(broker.address) as client:
            request = MetadataRequest(topics=unknown_topics(MANY))
            rows = client.ask(ApiKey.METADATA, 9, request).topics
        neighbour.assert_undisturbed(PATIENCE_SECONDS)
        assert {row.error_code for row in rows} == {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}
        assert sum(row.error_code == 0 for row in rows) < MANY / 10


def test_a_million_elements_and_one_more_are_refused(client, logged):
    ids = struct.pack(">i", 1_000_001) + bytes(4 * 1_000_001)
    body = (
        struct.pack(">i", 1) + struct.pack(">h", 1) + b"x" + ids
    )  # DescribeLogDirs: one topic, its partitions
    client.send_bytes(framed(struct.pack(">hhih", 35, 1, 1, -1) + body))
    assert client.is_closed_by_broker()
    logged("sent a bad request")


# Records


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_compression_bomb_is_refused_within_bounds(broker, client, codec):
    client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("bombs", max_message_bytes="1000000"))
    bomb = a_batch(bytes(200 * MEGABYTE), codec=codec)
    broker.forget_peak()
    before = broker.resident_bytes()
    row = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(bomb, "bombs")))
    assert row.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert broker.peak_bytes() - before < 160 * MEGABYTE


def test_a_hundred_batches_that_swell_do_not_keep_the_others_waiting(neighbour, client):
    client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("swelling"))
    batch = a_batch(bytes(50 * MEGABYTE), codec=Codec.ZSTD)  # each one within its limit
    request = a_produce(batch, "swelling")
    request.topic_data *= 100
    rows = client.ask(ApiKey.PRODUCE, 9, request).responses
    codes = [row.error_code for topic in rows for row in topic.partition_responses]
    assert codes[0] == ErrorCode.NONE
    assert codes[-1] == ErrorCode.REQUEST_TIMED_OUT
    neighbour.assert_undisturbed(2.5)


@pytest.mark.parametrize("name", ["../x", ".", "..", "", "x" * 250, "a/b", "a\0b", "größe", "a b"])
def test_an_impossible_topic_is_made_by_no_request(broker, client, name):
    files = sorted(path.name for path in broker.directory.iterdir())
    rows = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[MetadataRequest.Topics(name=name)])).topics
    assert [row.error_code for row in rows] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    (created,) = client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(name)).topics
    assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    produced = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), name)))
    assert produced.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(path.name for path in broker.directory.iterdir()) == files


# Clients that do not read


def send_until_nobody_reads(client: WireClient, request: bytes) -> None:
    client.socket.settimeout(0.5)
    for _ in range(10_000):
        try:
            client.send_bytes(request * 200)
        except TimeoutError:
            return
    raise AssertionError("the broker reads on and on")


def test_a_client_that_never_reads_its_fetches_costs_no_memory(broker, client):
    client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("unread"))
    for _ in range(20):
        client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(bytes(900_000)), "unread"))
    broker.forget_peak()
    before = broker.resident_bytes()
    with WireClient(broker.address) as deaf:
        send_until_nobody_reads(
            deaf, request_frame(ApiKey.FETCH, 12, a_fetch("unread", partition_max_bytes=50 * MEGABYTE))
        )
        with WireClient(broker.address) as other:
            assert other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        assert broker.peak_bytes() - before < 30 * MEGABYTE


def test_a_client_that_never_reads_large_answers_is_not_read_either(broker):
    broker.forget_peak()
    before = broker.resident_bytes()
    resource = DescribeConfigsRequest.Resources(resource_type=4, resource_name="0")
    question = request_frame(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource]))
    with WireClient(broker.address) as deaf:
        send_until_nobody_reads(deaf, question)
        with WireClient(broker.address) as other:
            assert other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    assert broker.peak_bytes() - before < 60 * MEGABYTE


def test_clients_that_vanish_while_they_wait_leave_nothing_behind(broker):
    def wait_and_vanish() -> None:
        with WireClient(broker.address) as client:
            for _ in range(20):
                client.send(ApiKey.FETCH, 12, a_fetch("neighbour", 2**40, max_wait_ms=2**31 - 1))
                client.send(ApiKey.FETCH, 12, a_fetch("idle", 0, max_wait_ms=2**31 - 1))

    with WireClient(broker.address) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("idle"))
    for _ in range(50):
        wait_and_vanish()
    before = broker.resident_bytes()
    for _ in range(300):
        wait_and_vanish()
    assert broker.resident_bytes() - before < 5 * MEGABYTE


def test_a_closed_connection_is_reported_to_its_client(client):
    client.send_bytes(b"\xff\xff\xff\xff")
    with pytest.raises(ClosedByBroker):
        client.receive_frame()
