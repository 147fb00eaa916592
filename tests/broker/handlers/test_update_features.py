from __future__ import annotations

from pathlib import Path
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, UpdateFeaturesRequest

from ..on_this_loop import a_broker, run


def an_update(level: int, **fields: Any) -> UpdateFeaturesRequest:
    row = UpdateFeaturesRequest.FeatureUpdates
    return UpdateFeaturesRequest(
        feature_updates=[row(feature="transaction.version", max_version_level=level, **fields)]
    )


def test_one_broker_offers_transactions_v2_at_once_and_they_can_be_switched_off(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (_, wire):
            asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")

            async def finalized() -> list[tuple[str, int]]:
                answer = await wire.ask(ApiKey.API_VERSIONS, 4, asked)
                (supported,) = answer.supported_features
                assert (supported.min_version, supported.max_version) == (0, 2)
                return [(one.name, one.max_version_level) for one in answer.finalized_features]

            assert await finalized() == [("transaction.version", 2)]
            # Clients of version 3 refuse a feature whose lowest level is 0.
            assert (await wire.ask(ApiKey.API_VERSIONS, 3, asked)).supported_features == []

            refused = await wire.ask(ApiKey.UPDATE_FEATURES, 2, an_update(1))
            assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
            assert "Can't downgrade" in refused.error_message
            old = await wire.ask(ApiKey.UPDATE_FEATURES, 0, an_update(1, allow_downgrade=True))
            assert (old.error_code, old.results[0].error_code) == (ErrorCode.NONE, ErrorCode.NONE)
            assert await finalized() == [("transaction.version", 1)]
            off = await wire.ask(ApiKey.UPDATE_FEATURES, 2, an_update(0, upgrade_type=2))
            assert off.error_code == ErrorCode.NONE
            assert await finalized() == []

    run(main)
