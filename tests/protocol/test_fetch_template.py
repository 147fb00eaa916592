"""A fetch made from a template is the one that the schema's encoder makes; only plain answers are read."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import fetch_template
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_template import FIRST_VERSION, LAST_VERSION
from odradek.protocol.headers import decode_response, encode_request, encode_response
from odradek.protocol.messages import FetchRequest, FetchResponse
from protocol.twins import interpreted

SESSION = 0x01020304
Row = FetchResponse.Responses.Partitions


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def templates(request: pytest.FixtureRequest) -> ModuleType:
    return fetch_template if request.param == "compiled" else interpreted(fetch_template)


versions = st.integers(FIRST_VERSION, LAST_VERSION)
topic_ids = st.binary(min_size=16, max_size=16)
int64s = st.integers(-1, 2**63 - 1)
int32s = st.integers(0, 2**31 - 1)


def fetch(topic_id: bytes, partition: int, epoch: int, offset: int, rack: str) -> FetchRequest:
    row = FetchRequest.Topics.Partitions(
        partition=partition, current_leader_epoch=3, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=SESSION,
        session_epoch=epoch,
        rack_id=rack,
        topics=[FetchRequest.Topics(topic_id=topic_id, partitions=[row])],
    )


@given(
    version=versions,
    client_id=st.text(max_size=30),
    topic_id=topic_ids,
    partition=int32s,
    rack=st.text(max_size=10),
    asked=st.lists(st.tuples(int32s, st.integers(0, 2**63 - 1)), min_size=1, max_size=4),
)
def test_a_request_is_what_the_schema_makes(
    templates, version, client_id, topic_id, partition, rack, asked
) -> None:
    made = templates.FetchTemplate(version, client_id, fetch(topic_id, partition, 7, 7, rack))
    for epoch, offset in asked:
        request = fetch(topic_id, partition, epoch, offset, rack)
        expected = b"".join(encode_request(ApiKey.FETCH, version, 0, client_id, request))
        assert made.request(epoch, offset) == expected


rows = st.builds(
    Row,
    partition_index=int32s,
    error_code=st.sampled_from([0, 0, 0, 1, 6]),
    high_watermark=int64s,
    last_stable_offset=int64s,
    log_start_offset=int64s,
    aborted_transactions=st.none()
    | st.lists(st.builds(Row.AbortedTransactions, producer_id=int64s, first_offset=int64s), max_size=1),
    preferred_read_replica=st.sampled_from([-1, -1, -1, 2]),
    records=st.none() | st.sampled_from([0, 1, 61, 126, 127, 128, 16_383, 40_000]).map(bytes),
    diverging_epoch=st.just(Row.DivergingEpoch()) | st.builds(Row.DivergingEpoch, epoch=int32s),
)
answers = st.builds(
    FetchResponse,
    throttle_time_ms=st.sampled_from([0, 0, 0, 5]),
    error_code=st.sampled_from([0, 0, 0, 71]),
    session_id=st.sampled_from([SESSION, SESSION, SESSION, 0, 9]),
    responses=st.lists(
        st.builds(
            FetchResponse.Responses, topic_id=topic_ids, partitions=st.lists(rows, min_size=1, max_size=2)
        ),
        min_size=1,
        max_size=2,
    )
    | st.just([]),
)


def is_plain(answer: FetchResponse) -> bool:
    """By the schema's objects: one partition with records, and all else as it is by default."""
    found = [row for topic in answer.responses for row in topic.partitions]
    if len(answer.responses) != 1 or len(found) != 1 or answer.session_id != SESSION:
        return False
    (row,) = found
    return (
        (answer.throttle_time_ms, answer.error_code, row.error_code) == (0, 0, 0)
        and not row.aborted_transactions
        and row.preferred_read_replica == -1
        and bool(row.records)
        and row.diverging_epoch == Row.DivergingEpoch()
    )


@given(version=versions, answer=answers)
def test_exactly_the_plain_answers_are_read_and_say_what_the_schema_says(templates, version, answer) -> None:
    frame = memoryview(b"".join(encode_response(ApiKey.FETCH, version, 5, answer))[4:])
    found = templates.read_plain_fetch(frame, SESSION)
    assert (found is not None) == is_plain(answer)
    if found is not None:
        (topic,) = answer.responses
        (row,) = topic.partitions
        assert found.name == templates.row_name(topic.topic_id, row.partition_index)
        assert found.high_watermark == row.high_watermark
        assert found.last_stable_offset == row.last_stable_offset
        assert found.log_start_offset == row.log_start_offset
        assert found.records == row.records


@given(version=versions, data=st.data())
def test_damaged_answers_are_never_read_past_their_end(templates, version, data) -> None:
    row = Row(high_watermark=5, preferred_read_replica=-1, aborted_transactions=None, records=bytes(200))
    topic = FetchResponse.Responses(topic_id=bytes(16), partitions=[row])
    answer = FetchResponse(session_id=SESSION, responses=[topic])
    frame = bytearray(b"".join(encode_response(ApiKey.FETCH, version, 5, answer))[4:])
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    if cut and data.draw(st.booleans()):
        cut[data.draw(st.integers(0, len(cut) - 1))] ^= data.draw(st.integers(1, 255))
    found = templates.read_plain_fetch(memoryview(bytes(cut)), SESSION)
    if found is not None:
        _, reported = decode_response(ApiKey.FETCH, version, bytes(cut))
        assert reported.responses[0].partitions[0].records == found.records
