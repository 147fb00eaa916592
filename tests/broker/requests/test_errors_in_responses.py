from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.requests.errors_in_responses import error_response
from odradek.broker.requests.served_apis import SERVED
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import request_class, response_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.structs import Struct

FAULT = ErrorCode.UNKNOWN_SERVER_ERROR
# Nothing is asked for by name here.
WITHOUT_A_PLACE = {(ApiKey.DESCRIBE_LOG_DIRS, version) for version in range(3)}


def filled(row_class: Any) -> Any:
    """A request with one row of everything; integers and names of no meaning."""
    row = row_class()
    for field in row_class.__slots__:
        nested = getattr(row_class, "".join(word.capitalize() for word in field.split("_")), None)
        if isinstance(nested, type) and isinstance(getattr(row, field, None), (list, type(None))):
            setattr(row, field, [filled(nested)])
        elif getattr(row, field, None) == []:
            is_numbers = field in {"partitions", "partition_indexes", "broker_ids", "resource_types"}
            setattr(row, field, [7] if is_numbers else ["something"])
        elif field == "name":
            row.name = "orders"
    return row


def codes(value: Any) -> list[int]:
    """Every error code in a response."""
    if isinstance(value, list):
        return [code for one in value for code in codes(one)]
    if not isinstance(value, Struct):
        return []
    own = [getattr(value, name) for name in ("error_code", "partition_error_code") if hasattr(value, name)]
    return own + [code for field in type(value).__slots__ for code in codes(getattr(value, field))]


@pytest.mark.parametrize("api_key", sorted(SERVED), ids=lambda one: one.name)
def test_every_api_can_report_a_fault_in_every_version(api_key: ApiKey) -> None:
    request = filled(request_class(api_key))
    if api_key is ApiKey.PRODUCE:
        request.acks = 1

    response = error_response(api_key, request, FAULT, "a fault")

    assert response is not None
    low, high = SERVED[api_key]
    for version in range(low, high + 1):
        decoded, _ = response_class(api_key).decode(memoryview(response.encode(version)), version, 0)
        if (api_key, version) not in WITHOUT_A_PLACE:
            assert FAULT in codes(decoded), version


def test_each_row_is_reported_by_its_name() -> None:
    request = request_class(ApiKey.PRODUCE)(acks=1, topic_data=[])
    topic = type(request).TopicData(name="orders", partition_data=[])
    topic.partition_data = [type(topic).PartitionData(index=index) for index in (3, 5)]
    request.topic_data = [topic]

    (row,) = error_response(ApiKey.PRODUCE, request, FAULT, "a fault").responses

    assert row.name == "orders"
    assert [(one.index, one.error_code, one.error_message) for one in row.partition_responses] == [
        (3, FAULT, "a fault"),
        (5, FAULT, "a fault"),
    ]


def test_nobody_reads_an_answer_to_a_produce_without_acks() -> None:
    request = request_class(ApiKey.PRODUCE)(acks=0)
    assert error_response(ApiKey.PRODUCE, request, FAULT, "a fault") is None
