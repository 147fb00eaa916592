"""A cluster of ours that speaks an older version of transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from client.eventually import eventually
from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.network.brokers import Brokers
from odradek.client.producer.config import producer_config
from odradek.client.producer.transactions.requests import FEATURE
from odradek.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

UNSAFE_DOWNGRADE = 3


def set_transaction_version(bootstrap: str, level: int) -> None:
    """Finalize another level of the feature, and wait until every broker has it."""
    background = BackgroundLoop("features")
    row = UpdateFeaturesRequest.FeatureUpdates(
        feature=FEATURE, max_version_level=level, upgrade_type=UNSAFE_DOWNGRADE
    )

    async def change() -> None:
        async with brokers_of(bootstrap) as brokers:
            request = UpdateFeaturesRequest(feature_updates=[row])
            response = await brokers.send_to_controller(request, UpdateFeaturesResponse)
            assert response.error_code == 0, response

    async def levels() -> set[int]:
        async with brokers_of(bootstrap) as brokers:
            nodes = list(brokers.metadata.nodes)
            return {(await brokers.connection(node)).versions.features.get(FEATURE, 0) for node in nodes}

    try:
        background.call(change())
        eventually(lambda: background.call(levels()) == {level})
    finally:
        background.close()


@asynccontextmanager
async def brokers_of(bootstrap: str) -> AsyncIterator[Brokers]:
    """New connections, which learn what is finalized now."""
    brokers = Brokers(producer_config({"bootstrap_servers": bootstrap}), "features")
    try:
        await brokers.ensure_fresh()
        yield brokers
    finally:
        await brokers.close()
