"""A cluster of ours that speaks an older version of transactions."""

from __future__ import annotations

from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.network.brokers import Brokers
from odradek.client.producer.config import producer_config
from odradek.client.producer.transactions.requests import FEATURE
from odradek.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

UNSAFE_DOWNGRADE = 3


def set_transaction_version(bootstrap: str, level: int) -> None:
    """Finalize another level of the feature."""
    background = BackgroundLoop("features")

    async def change() -> None:
        brokers = Brokers(producer_config({"bootstrap_servers": bootstrap}), "features")
        await brokers.ensure_fresh()
        row = UpdateFeaturesRequest.FeatureUpdates(
            feature=FEATURE, max_version_level=level, upgrade_type=UNSAFE_DOWNGRADE
        )
        connection = await brokers.connection(next(iter(brokers.metadata.nodes)), "features")
        request = UpdateFeaturesRequest(feature_updates=[row])
        answer = await connection.ask(request, UpdateFeaturesResponse)
        assert answer.error_code == 0, answer
        await brokers.close()

    try:
        background.call(change())
    finally:
        background.close()
