"""The classes and header versions of each API, and the versions to advertise.

| request version | request header | response header |
| --- | --- | --- |
| not flexible | 1 (ControlledShutdown 0: 0) | 0 |
| flexible | 2 | 1 (ApiVersions: always 0) |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

from odradek.common.error_codes import ErrorCode
from odradek.protocol import messages, schema
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsResponse
from odradek.protocol.schema import MessageSpec, Versions
from odradek.protocol.structs import Message


@cache
def request_spec(api_key: ApiKey) -> MessageSpec:
    """The schema of an API's request."""
    return schema.load_by_key("request", api_key)


@cache
def request_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's request."""
    return cast("type[Message]", getattr(messages, request_spec(api_key).name))


@cache
def response_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's response."""
    return cast("type[Message]", getattr(messages, schema.load_by_key("response", api_key).name))


def stable_versions(api_key: ApiKey) -> Versions:
    """The versions that exist, without those that are not for general use yet."""
    spec = request_spec(api_key)
    high = min(spec.versions.high, spec.unstable.low - 1) if spec.unstable else spec.versions.high
    return Versions(spec.versions.low, high)


@cache
def request_header_version(api_key: ApiKey, version: int) -> int:
    """The header version of a request of this version."""
    if api_key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if _is_flexible(api_key, version) else 1


@cache
def response_header_version(api_key: ApiKey, version: int) -> int:
    """The header version of the response to a request of this version."""
    # A client that sends ApiVersions does not know the broker's versions yet, so that header never changes.
    if api_key is ApiKey.API_VERSIONS:
        return 0
    return 1 if _is_flexible(api_key, version) else 0


def _is_flexible(api_key: ApiKey, version: int) -> bool:
    # A version beyond the schema must still get a response; it is as flexible as the last known one.
    spec = request_spec(api_key)
    return spec.is_flexible(min(version, spec.versions.high))


def advertised(served: Mapping[ApiKey, Versions]) -> list[ApiVersionsResponse.ApiKeys]:
    """The rows of an ApiVersions response for the versions that handlers serve.

    Produce is advertised from version 0, but 0-2 are rejected: older librdkafka otherwise stops compressing.
    """
    rows = []
    for api_key, versions in sorted(served.items()):
        low = 0 if api_key is ApiKey.PRODUCE else versions.low
        rows.append(ApiVersionsResponse.ApiKeys(api_key=api_key, min_version=low, max_version=versions.high))
    return rows


def answer_to_unknown_api_versions(served: Mapping[ApiKey, Versions]) -> ApiVersionsResponse:
    """The response, encoded in version 0, to an ApiVersions request of an unknown version.

    It has the versions of ApiVersions itself, so that the client can retry.
    """
    own = {ApiKey.API_VERSIONS: served[ApiKey.API_VERSIONS]}
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=advertised(own))
