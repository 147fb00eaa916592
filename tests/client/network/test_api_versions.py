from __future__ import annotations

import struct

import pytest

from odradek.client.errors import UnsupportedByBroker
from odradek.client.network.api_versions import BrokerVersions, read_response
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsResponse
from odradek.protocol.schema import Versions


def serving(low: int, high: int) -> BrokerVersions:
    return BrokerVersions("here:1", {ApiKey.METADATA: Versions(low, high)})


@pytest.mark.parametrize(("low", "high", "best"), [(0, 8, 8), (12, 99, 13), (4, 4, 4)])
def test_the_best_version_is_the_highest_that_both_know(low, high, best):
    assert serving(low, high).best(ApiKey.METADATA) == best


def test_a_caller_may_ask_for_less():
    assert serving(0, 12).best(ApiKey.METADATA, max_version=9) == 9


def test_a_broker_without_a_common_version_is_named():
    with pytest.raises(
        UnsupportedByBroker, match="here:1 serves METADATA in versions 90-99; this client supports 0-13"
    ):
        serving(90, 99).best(ApiKey.METADATA)
    with pytest.raises(UnsupportedByBroker, match="serves PRODUCE in no version"):
        serving(0, 5).best(ApiKey.PRODUCE)


def frame(answer: ApiVersionsResponse, version: int) -> memoryview:
    return memoryview(struct.pack(">i", 1) + answer.encode(version))


def test_a_broker_that_does_not_know_our_version_reports_which_to_ask_in():
    row = ApiVersionsResponse.ApiKeys(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
    assert read_response("here:1", 4, frame(refusal, 0)) == 2
    refusal.api_keys = []
    assert read_response("here:1", 4, frame(refusal, 0)) == 0


def test_finalized_features_are_kept():
    feature = ApiVersionsResponse.FinalizedFeatures(name="transaction.version", max_version_level=2)
    reported = read_response("here:1", 4, frame(ApiVersionsResponse(finalized_features=[feature]), 4))
    assert isinstance(reported, BrokerVersions)
    assert reported.features == {"transaction.version": 2}
