"""The bytes-to-bytes way of an ordinary produce request says what the schema's codec says."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import produce_frames
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.headers import decode_request, encode_request, encode_response
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.protocol.produce_frames import FIRST_VERSION, LAST_VERSION, TOPIC_IDS_FROM, ProduceFrame
from protocol.twins import interpreted


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def frames(request: pytest.FixtureRequest) -> ModuleType:
    return produce_frames if request.param == "compiled" else interpreted(produce_frames)


versions = st.integers(FIRST_VERSION, LAST_VERSION)
partitions = st.builds(
    ProduceRequest.TopicData.PartitionData,
    index=st.integers(-(2**31), 2**31 - 1),
    records=st.binary(min_size=1, max_size=20) | st.binary(max_size=60).map(lambda rest: bytes(23) + rest),
)
topics = st.builds(
    ProduceRequest.TopicData,
    name=st.text(max_size=200),
    topic_id=st.binary(min_size=16, max_size=16),
    partition_data=st.lists(partitions, max_size=5),
)
requests = st.builds(
    ProduceRequest,
    acks=st.sampled_from([1, -1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    topic_data=st.lists(topics, max_size=4),
)
client_ids = st.none() | st.text(st.characters(codec="ascii"), max_size=50)
offsets = st.integers(-(2**63), 2**63 - 1)


class Place(NamedTuple):
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def frame_of(version: int, request: ProduceRequest, client_id: str | None = "me") -> bytearray:
    kept = request
    for topic in kept.topic_data:
        if version >= TOPIC_IDS_FROM:
            topic.name = ""
        else:
            topic.topic_id = bytes(16)
    parts = encode_request(ApiKey.PRODUCE, version, 77, client_id, kept)
    return bytearray(b"".join(bytes(part) for part in parts)[4:])


def told(frame: ProduceFrame) -> list[tuple[object, list[tuple[int, bytes]]]]:
    return [(one.topic, [(index, bytes(batch)) for index, batch in one.batches]) for one in frame.topics]


def told_by_schema(version: int, request: ProduceRequest) -> list[tuple[object, list[tuple[int, bytes]]]]:
    return [
        (
            topic.topic_id if version >= TOPIC_IDS_FROM else topic.name,
            [(one.index, bytes(one.records or b"")) for one in topic.partition_data],
        )
        for topic in request.topic_data
    ]


@given(version=versions, request=requests, client_id=client_ids)
def test_an_ordinary_request_is_read_as_the_schema_reads_it(frames, version, request, client_id):
    frame = frame_of(version, request, client_id)

    found = frames.read_produce(memoryview(frame))

    assert found is not None
    assert (found.version, found.correlation_id, found.acks) == (version, 77, request.acks)
    assert told(found) == told_by_schema(version, request)


@given(version=versions, request=requests, data=st.data())
def test_of_damaged_bytes_it_says_nothing_or_what_the_schema_says(frames, version, request, data):
    frame = frame_of(version, request)
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(0, len(frame))) :]

    found = frames.read_produce(memoryview(frame))

    if found is not None:
        start, _, decoded = decode_request(frame)
        assert start.version == found.version
        assert told(found) == told_by_schema(start.version, decoded)


@given(frame=st.binary(max_size=100))
def test_no_bytes_are_read_that_are_not_there(frames, frame):
    found = frames.read_produce(memoryview(bytearray(b"\x00\x00\x00\x0d" + frame)))

    if found is not None:
        start, _, decoded = decode_request(b"\x00\x00\x00\x0d" + frame)
        assert told(found) == told_by_schema(start.version, decoded)


@given(version=versions, request=requests, data=st.data())
def test_the_answer_has_the_bytes_that_the_schema_gives_it(frames, version, request, data):
    found = frames.read_produce(memoryview(frame_of(version, request)))
    assert found is not None
    places, responses = [], []
    for topic in request.topic_data:
        response = ProduceResponse.Responses(name=topic.name, topic_id=topic.topic_id)
        for part in topic.partition_data:
            place = Place(data.draw(offsets), data.draw(offsets), data.draw(offsets))
            places.append(place)
            response.partition_responses.append(
                response.PartitionResponses(index=part.index, error_code=0, **place._asdict())
            )
        responses.append(response)

    answer = frames.answer_produce(found, places)

    expected = encode_response(ApiKey.PRODUCE, version, 77, ProduceResponse(responses=responses))
    assert answer == b"".join(bytes(part) for part in expected)


def test_what_is_not_ordinary_is_left_to_the_schema(frames):
    ordinary = ProduceRequest(acks=1, timeout_ms=1, topic_data=[])
    assert frames.read_produce(memoryview(frame_of(9, ordinary))) is not None
    for acks, transactional_id in ((0, None), (2, None), (1, "t")):
        unusual = ProduceRequest(acks=acks, transactional_id=transactional_id, timeout_ms=1, topic_data=[])
        assert frames.read_produce(memoryview(frame_of(9, unusual))) is None
    empty = ProduceRequest.TopicData(
        name="t", partition_data=[ProduceRequest.TopicData.PartitionData(index=0)]
    )
    assert frames.read_produce(memoryview(frame_of(9, ProduceRequest(acks=1, topic_data=[empty])))) is None
    of_transaction = ProduceRequest.TopicData(
        name="t",
        partition_data=[ProduceRequest.TopicData.PartitionData(index=0, records=bytes(22) + b"\x10")],
    )
    assert (
        frames.read_produce(memoryview(frame_of(9, ProduceRequest(acks=1, topic_data=[of_transaction]))))
        is None
    )
    parts = encode_request(ApiKey.PRODUCE, 8, 77, "me", ordinary)
    assert frames.read_produce(memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))) is None


def test_very_many_batches_are_left_to_who_serves_others_meanwhile(frames):
    def frame(topics, partitions):
        parts = [ProduceRequest.TopicData.PartitionData(index=n, records=b"r") for n in range(partitions)]
        data = [ProduceRequest.TopicData(name=f"t{n}", partition_data=parts) for n in range(topics)]
        return memoryview(frame_of(9, ProduceRequest(acks=1, topic_data=data)))

    most = frames.MOST_BATCHES
    for topics, partitions in ((1, most), (most, 1), (2, most // 2), (most, 0)):
        assert frames.read_produce(frame(topics, partitions)) is not None
    for topics, partitions in ((1, most + 1), (most + 1, 1), (2, most // 2 + 1), (most + 1, 0)):
        assert frames.read_produce(frame(topics, partitions)) is None


def test_a_damaged_name_is_left_to_the_schema(frames):
    request = ProduceRequest(acks=1, topic_data=[ProduceRequest.TopicData(name="abc", partition_data=[])])
    frame = frame_of(9, request)
    frame[frame.index(b"abc")] = 0xFF

    assert frames.read_produce(memoryview(frame)) is None
    try:
        decode_request(frame)
    except ProtocolError:
        return
    raise AssertionError("the schema takes it")
