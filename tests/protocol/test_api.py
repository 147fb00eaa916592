from __future__ import annotations

import pytest

from odradek.protocol.api import (
    advertised,
    answer_to_unknown_api_versions,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
    stable_versions,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsResponse, FetchRequest, FetchResponse
from odradek.protocol.schema import Versions


@pytest.mark.parametrize(
    ("api_key", "version", "request_header", "response_header"),
    [
        (ApiKey.FETCH, 11, 1, 0),
        (ApiKey.FETCH, 12, 2, 1),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
    ],
)
def test_header_versions_follow_flexibility_and_its_exceptions(
    api_key, version, request_header, response_header
):
    assert request_header_version(api_key, version) == request_header
    assert response_header_version(api_key, version) == response_header


def test_classes_by_key():
    assert request_class(ApiKey.FETCH) is FetchRequest
    assert response_class(ApiKey.FETCH) is FetchResponse


def test_unstable_versions_are_not_for_general_use():
    assert stable_versions(ApiKey.INIT_PRODUCER_ID) == Versions(0, 5)
    assert stable_versions(ApiKey.FETCH) == Versions(0, 18)


def test_produce_is_advertised_from_zero_and_the_rest_as_served():
    rows = advertised({ApiKey.FETCH: Versions(4, 18), ApiKey.PRODUCE: Versions(3, 13)})
    assert [(row.api_key, row.min_version, row.max_version) for row in rows] == [(0, 0, 13), (1, 4, 18)]


def test_an_unknown_api_versions_request_gets_the_known_ones_in_version_zero():
    answer = answer_to_unknown_api_versions({ApiKey.API_VERSIONS: Versions(0, 4)})
    assert answer.encode(0) == b"\x00\x23" + b"\x00\x00\x00\x01" + b"\x00\x12\x00\x00\x00\x04"
    assert ApiVersionsResponse.decode(answer.encode(0), 0)[0].error_code == 35
