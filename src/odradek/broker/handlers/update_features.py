"""UpdateFeatures, API key 57: change the level of features that are finalized in the cluster.

Versions 0-2.  1: upgrade types, validate only.  2: one error for all features.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.cluster.features import FeatureUpdate, UpgradeType
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE_TYPES_FROM, ONE_ERROR_FROM = 1, 2


@handles(ApiKey.UPDATE_FEATURES, versions=(0, 2))
async def update_features(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """All updates are made, or none."""
    updates = [_update(context, asked) for asked in request.feature_updates]
    changed = context.services.features.update(updates, validate_only=request.validate_only)
    await from_store(changed, request.timeout_ms / 1000)
    response = UpdateFeaturesResponse(error_message=None)
    if context.version < ONE_ERROR_FROM:
        response.results = [
            UpdateFeaturesResponse.Results(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in updates
        ]
    return response


def _update(context: RequestContext, asked: UpdateFeaturesRequest.FeatureUpdates) -> FeatureUpdate:
    upgrade_type = asked.upgrade_type
    if context.version < UPGRADE_TYPES_FROM and asked.allow_downgrade:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE
    return FeatureUpdate(asked.feature, asked.max_version_level, upgrade_type)
