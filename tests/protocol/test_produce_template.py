"""A request made from a template is the one that the schema's encoder makes; only plain answers are read."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import produce_template
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request, encode_response
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.protocol.produce_template import FIRST_VERSION, LAST_VERSION, TOPIC_IDS_FROM
from protocol.twins import interpreted

TOPIC_ID = bytes(range(16))
Fate = ProduceResponse.Responses.PartitionResponses


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def templates(request: pytest.FixtureRequest) -> ModuleType:
    return produce_template if request.param == "compiled" else interpreted(produce_template)


def template(templates: ModuleType, version: int, **changes: Any) -> Any:
    usual: dict[str, Any] = {"acks": 1, "timeout_ms": 30_000, "topic": "orders", "topic_id": TOPIC_ID}
    return templates.ProduceTemplate(version, "me", **{**usual, "partition": 2, **changes})


def name(version: int, topic: str = "orders") -> dict[str, Any]:
    return {"topic_id": TOPIC_ID} if version >= TOPIC_IDS_FROM else {"name": topic}


def answer(version: int, fate: Fate, correlation_id: int = 7, **rest: Any) -> memoryview:
    topic = ProduceResponse.Responses(partition_responses=[fate], **name(version))
    response = ProduceResponse(responses=[topic], **rest)
    return memoryview(b"".join(encode_response(ApiKey.PRODUCE, version, correlation_id, response))[4:])


versions = st.integers(FIRST_VERSION, LAST_VERSION)
int64s = st.integers(0, 2**63 - 1)


@given(
    version=versions,
    correlation_id=st.integers(0, 2**31 - 1),
    topic=st.text(min_size=1, max_size=249),
    partition=st.integers(0, 2**31 - 1),
    acks=st.sampled_from([1, -1]),
    size=st.sampled_from([1, 61, 126, 127, 128, 16_382, 16_383, 16_384, 70_000]) | st.integers(1, 40_000),
)
def test_a_request_is_what_the_schema_makes(
    templates, version, correlation_id, topic, partition, acks, size
) -> None:
    batch = bytearray(size)
    made = template(templates, version, acks=acks, topic=topic, partition=partition)
    rows = [ProduceRequest.TopicData.PartitionData(index=partition, records=batch)]
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[ProduceRequest.TopicData(partition_data=rows, **name(version, topic))],
    )
    expected = b"".join(encode_request(ApiKey.PRODUCE, version, correlation_id, "me", request))
    assert made.request(correlation_id, batch) == expected


@given(version=versions, base_offset=int64s, append_time_ms=st.integers(-1, 2**62), log_start_offset=int64s)
def test_a_plain_answer_reports_where_the_batch_went(
    templates, version, base_offset, append_time_ms, log_start_offset
) -> None:
    fate = Fate(
        index=2,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=log_start_offset,
    )
    made, reported = template(templates, version), answer(version, fate)
    assert made.base_offset(reported) == base_offset
    assert made.log_append_time_ms(reported) == append_time_ms


@given(version=versions, data=st.data())
def test_an_answer_that_differs_anywhere_else_is_left_to_the_schema(templates, version, data) -> None:
    reported = bytearray(answer(version, Fate(index=2, base_offset=5)))
    numbers = reported.index((5).to_bytes(8, "big"))
    place = data.draw(st.sampled_from([*range(4, numbers), *range(numbers + 24, len(reported))]))
    reported[place] ^= data.draw(st.integers(1, 255))
    assert template(templates, version).base_offset(memoryview(reported)) == -1


@pytest.mark.parametrize("version", [FIRST_VERSION, LAST_VERSION])
def test_errors_throttling_and_cut_answers_are_left_to_the_schema(templates, version) -> None:
    made = template(templates, version)
    good = answer(version, Fate(index=2, base_offset=5))
    assert made.base_offset(good) == 5
    others = [
        answer(version, Fate(index=2, error_code=6)),
        answer(version, Fate(index=2, error_message="no")),
        answer(version, Fate(index=3)),
        answer(version, Fate(index=2), throttle_time_ms=1),
        good[:-1],
        memoryview(bytes(good) + b"\0"),
        memoryview(b"\0\0\0\7"),
    ]
    assert [made.base_offset(other) for other in others] == [-1] * len(others)


def test_only_versions_that_look_like_this_are_served(templates) -> None:
    assert [version for version in range(20) if templates.ProduceTemplate.serves(version)] == [
        9,
        10,
        11,
        12,
        13,
    ]
