"""The bytes-to-bytes way of an ordinary fetch request says what the schema's codec says."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import fetch_frames
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.fetch_frames import FIRST_VERSION, LAST_VERSION, MAX_PARTITIONS, TOPIC_IDS_FROM
from odradek.protocol.headers import decode_request, encode_request, encode_response
from odradek.protocol.messages import FetchRequest, FetchResponse
from protocol.twins import interpreted

FLEXIBLE_FROM = 12


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def frames(request: pytest.FixtureRequest) -> ModuleType:
    return fetch_frames if request.param == "compiled" else interpreted(fetch_frames)


int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
versions = st.integers(FIRST_VERSION, LAST_VERSION)
ascii_text = st.text(st.characters(codec="ascii"), max_size=50)
partitions = st.builds(
    FetchRequest.Topics.Partitions,
    partition=int32s,
    current_leader_epoch=int32s,
    fetch_offset=int64s,
    last_fetched_epoch=int32s,
    log_start_offset=int64s,
    partition_max_bytes=int32s,
)
topics = st.builds(
    FetchRequest.Topics,
    topic=st.text(max_size=200),
    topic_id=st.binary(min_size=16, max_size=16),
    partitions=st.lists(partitions, max_size=4),
)
forgotten_topics = st.builds(
    FetchRequest.ForgottenTopicsData,
    topic=st.text(max_size=20),
    topic_id=st.binary(min_size=16, max_size=16),
    partitions=st.lists(int32s, max_size=3),
)
requests = st.builds(
    FetchRequest,
    max_wait_ms=int32s,
    min_bytes=int32s,
    max_bytes=int32s,
    isolation_level=st.sampled_from([0, 1]),
    session_id=int32s,
    session_epoch=int32s,
    topics=st.lists(topics, max_size=4),
    forgotten_topics_data=st.lists(forgotten_topics, max_size=2),
    rack_id=ascii_text,
)
some_bytes = st.binary(max_size=20) | st.just(bytes(20_000))
# Whatever is not bytes goes out as it is, as parts of files do.
rows = st.tuples(int32s, int64s, int64s, int64s, some_bytes | some_bytes.filter(len).map(memoryview))


def frame_of(version: int, request: FetchRequest, client_id: str | None = "me") -> bytearray:
    """As a client of that version sends it."""
    for topic in (*request.topics, *request.forgotten_topics_data):
        if version >= TOPIC_IDS_FROM:
            topic.topic = ""
        else:
            topic.topic_id = bytes(16)
    for topic in request.topics:
        for partition in topic.partitions:
            if version < FLEXIBLE_FROM:
                partition.last_fetched_epoch = -1
    parts = encode_request(ApiKey.FETCH, version, 77, client_id, request)
    return bytearray(b"".join(bytes(part) for part in parts)[4:])


def told(version: int, request: Any, *, is_schema: bool) -> list[Any]:
    """What either way found in a frame; `is_schema`: ids stand apart from names."""
    whole = [version, request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level]
    whole += [request.session_id, request.session_epoch]
    for topic in request.topics:
        whole.append(topic.topic_id if is_schema and version >= TOPIC_IDS_FROM else topic.topic)
        whole += [
            (
                one.partition,
                one.current_leader_epoch,
                one.fetch_offset,
                one.last_fetched_epoch,
                one.partition_max_bytes,
            )
            for one in topic.partitions
        ]
    if not is_schema:
        return [*whole, *request.forgotten]
    for topic in request.forgotten_topics_data:
        name = topic.topic_id if version >= TOPIC_IDS_FROM else topic.topic
        whole += [(name, partition) for partition in topic.partitions]
    return whole


@given(version=versions, request=requests, client_id=st.none() | ascii_text)
def test_an_ordinary_request_is_read_as_the_schema_reads_it(frames, version, request, client_id):
    found = frames.read_fetch(memoryview(frame_of(version, request, client_id)))

    assert found is not None
    assert found.correlation_id == 77
    assert told(found.version, found, is_schema=False) == told(version, request, is_schema=True)


@given(version=versions, request=requests, data=st.data())
def test_of_damaged_bytes_it_says_nothing_or_what_the_schema_says(frames, version, request, data):
    frame = frame_of(version, request)
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(0, len(frame))) :]

    found = frames.read_fetch(memoryview(frame))

    if found is not None:
        start, _, decoded = decode_request(frame)
        assert told(found.version, found, is_schema=False) == told(start.version, decoded, is_schema=True)


@given(version=versions, frame=st.binary(max_size=100))
def test_no_bytes_are_read_that_are_not_there(frames, version, frame):
    frame = b"\x00\x01" + version.to_bytes(2) + frame
    for length in (len(frame), 3, 2):
        found = frames.read_fetch(memoryview(frame[:length]))
        if found is not None:
            start, _, decoded = decode_request(frame)
            assert told(found.version, found, is_schema=False) == told(start.version, decoded, is_schema=True)


@given(
    version=versions,
    isolation_level=st.sampled_from([0, 1]),
    session_id=int32s,
    found=st.dictionaries(st.text(max_size=20), st.lists(rows, max_size=3), max_size=3),
)
def test_the_answer_has_the_bytes_that_the_schema_gives_it(
    frames, version, isolation_level, session_id, found
):
    request = frames.read_fetch(memoryview(frame_of(version, FetchRequest(isolation_level=isolation_level))))
    expected = FetchResponse(session_id=session_id, responses=[])
    by_topic: dict[Any, list[Any]] = {}
    for number, (name, told_rows) in enumerate(found.items()):
        key: Any = number.to_bytes(16) if version >= TOPIC_IDS_FROM else name
        by_topic[key] = [frames.FoundRecords(*row) for row in told_rows]
        expected.responses.append(a_response(version, key, isolation_level, told_rows))

    parts = frames.answer_fetch(request, session_id, by_topic)

    schema_parts = encode_response(ApiKey.FETCH, version, 77, expected)
    assert b"".join(parts) == b"".join(bytes(part) for part in schema_parts)
    assert all(parts)
    apart = [row[4] for told_rows in found.values() for row in told_rows if isinstance(row[4], memoryview)]
    assert parts[1::2] == apart


def a_response(version: int, key: Any, isolation_level: int, told_rows: list[Any]) -> FetchResponse.Responses:
    response = FetchResponse.Responses()
    if version >= TOPIC_IDS_FROM:
        response.topic_id = key
    else:
        response.topic = key
    for index, high_watermark, last_stable_offset, log_start_offset, records in told_rows:
        response.partitions.append(
            response.Partitions(
                partition_index=index,
                high_watermark=high_watermark,
                last_stable_offset=last_stable_offset,
                log_start_offset=log_start_offset,
                aborted_transactions=[] if isolation_level else None,
                records=records,
            )
        )
    return response


@pytest.mark.parametrize("version", [11, 12, 14, 15, 18])
def test_what_is_not_ordinary_is_left_to_the_schema(frames, version):
    def read(request: FetchRequest) -> Any:
        return frames.read_fetch(memoryview(frame_of(version, request)))

    assert read(FetchRequest()) is not None
    assert read(FetchRequest(isolation_level=2)) is None
    assert read(FetchRequest(rack_id="für")) is None
    if version <= 14:
        assert read(FetchRequest(replica_id=1)) is None
    else:
        assert read(FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1))) is None
    if version >= FLEXIBLE_FROM:
        assert read(FetchRequest(cluster_id="a cluster")) is None
    for other in (10, 19):
        frame = frame_of(version, FetchRequest())
        frame[2:4] = other.to_bytes(2)
        assert frames.read_fetch(memoryview(frame)) is None


def test_a_great_many_partitions_are_not_ordinary(frames):
    one = FetchRequest.Topics.Partitions(partition=0)
    for count, is_ordinary in ((MAX_PARTITIONS, True), (MAX_PARTITIONS + 1, False)):
        halves = [FetchRequest.Topics(partitions=[one] * half) for half in (count // 2, count - count // 2)]
        found = frames.read_fetch(memoryview(frame_of(16, FetchRequest(topics=halves))))
        assert (found is not None) == is_ordinary


def test_a_damaged_name_is_left_to_the_schema(frames):
    frame = frame_of(12, FetchRequest(topics=[FetchRequest.Topics(topic="abc")]))
    frame[frame.index(b"abc")] = 0xFF

    assert frames.read_fetch(memoryview(frame)) is None
    with pytest.raises(ProtocolError):
        decode_request(frame)
