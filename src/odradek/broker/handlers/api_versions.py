"""ApiVersions, API key 18: the APIs and versions that this broker serves.

Versions 0-4.  1: throttle time.  3: flexible, client software names, features.  4: features from version 0.
"""

from __future__ import annotations

import re
from functools import cache

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.served_apis import served_on
from odradek.cluster.features import SUPPORTED
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import advertised
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

NAMES_FROM, LEVEL_0_FROM = 3, 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiKey.API_VERSIONS, versions=(0, 4))
def api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List every API; an invalid client software name is an error."""
    names = (request.client_software_name, request.client_software_version)
    if context.version >= NAMES_FROM and not all(map(_SOFTWARE.fullmatch, names)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    response = ApiVersionsResponse(api_keys=_rows(context.services.config().is_for_brokers(context.listener)))
    if context.version >= NAMES_FROM:
        _add_features(context, response)
    return response


def _add_features(context: RequestContext, response: ApiVersionsResponse) -> None:
    """Clients choose the protocol of their transactions by the finalized transaction.version."""
    features = context.services.features
    response.supported_features = [
        ApiVersionsResponse.SupportedFeatures(name=name, min_version=low, max_version=high)
        for name, (low, high) in SUPPORTED.items()
        # Older clients do not accept a feature that can be off.
        if low > 0 or context.version >= LEVEL_0_FROM
    ]
    response.finalized_features_epoch = features.epoch
    response.finalized_features = [
        ApiVersionsResponse.FinalizedFeatures(name=name, min_version_level=level, max_version_level=level)
        for name, level in features.levels.items()
        if level > 0
    ]


@cache
def _rows(is_for_brokers: bool) -> list[ApiVersionsResponse.ApiKeys]:
    """Made once: every connection of every client begins with it."""
    return advertised(served_on(is_for_brokers=is_for_brokers))
