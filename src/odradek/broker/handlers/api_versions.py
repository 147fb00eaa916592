"""ApiVersions, API key 18: the APIs and versions that this broker serves.

Versions 0-4.  1: throttle time.  3: flexible, client software names, features.  4: features from version 0.
"""

from __future__ import annotations

import re
from functools import cache

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.served_apis import SERVED
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import advertised
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

NAMES_FROM = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiKey.API_VERSIONS, versions=(0, 4))
def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List every API; an invalid client software name is an error."""
    names = (request.client_software_name, request.client_software_version)
    if context.version >= NAMES_FROM and not all(map(_SOFTWARE.fullmatch, names)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=_told())


@cache
def _told() -> list[ApiVersionsResponse.ApiKeys]:
    """Made once: every connection of every client begins with it."""
    return advertised(SERVED)
