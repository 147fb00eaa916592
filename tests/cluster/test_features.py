from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.cluster.features import (
    SUPPORTED,
    TRANSACTION_VERSION,
    ClusterFeatures,
    FeatureUpdate,
    InvalidFeatureUpdate,
    UpgradeType,
)
from odradek.cluster.membership.brokers import Broker
from odradek.coordination import paths
from odradek.testing.memory_store import MemoryEnsemble

OURS = Broker(0, features=SUPPORTED)
OLDER = Broker(1, features={TRANSACTION_VERSION: (0, 1)})
WITHOUT = Broker(2)

Scenario = Callable[[ClusterFeatures, ClusterFeatures, Any], Coroutine[Any, Any, None]]


def run(scenario: Scenario) -> None:
    """With the features as two brokers see them, and the store."""

    async def main() -> None:
        ensemble = MemoryEnsemble()
        stores: list[Any] = [ensemble.open_session() for _ in range(2)]
        one, other = (ClusterFeatures(lambda store=store: store) for store in stores)
        await asyncio.wait_for(scenario(one, other, stores[0]), 20)
        one.stop()
        other.stop()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def finalized(features: ClusterFeatures, *brokers: Broker) -> int:
    features._brokers = {broker.broker_id: broker for broker in brokers}
    await features.finalize()
    return features.level(TRANSACTION_VERSION)


@pytest.mark.parametrize(
    ("brokers", "level"),
    [((OURS,), 2), ((OURS, OLDER), 1), ((OURS, WITHOUT), 0), ((), 0)],
)
def test_a_feature_is_finalized_when_every_broker_supports_it(
    brokers: tuple[Broker, ...], level: int
) -> None:
    async def scenario(features: ClusterFeatures, _: ClusterFeatures, store: Any) -> None:
        assert await finalized(features, *brokers) == level
        assert (await store.exists(paths.FEATURE) is not None) == bool(level)

    run(scenario)


def test_it_is_finalized_once_the_last_broker_without_it_has_left() -> None:
    async def scenario(features: ClusterFeatures, other: ClusterFeatures, _: Any) -> None:
        assert await finalized(features, OURS, WITHOUT) == 0
        await other.load()
        features.brokers_changed({0: OURS})
        await until(lambda: other.level(TRANSACTION_VERSION) == 2)
        assert other.epoch == features.epoch == 0

    run(scenario)


def test_what_was_switched_off_stays_off() -> None:
    async def scenario(features: ClusterFeatures, other: ClusterFeatures, _: Any) -> None:
        await finalized(features, OURS)
        off = FeatureUpdate(TRANSACTION_VERSION, 0, UpgradeType.SAFE_DOWNGRADE)
        await features.update([off], validate_only=True)
        assert features.level(TRANSACTION_VERSION) == 2
        await features.update([off], validate_only=False)
        assert await finalized(other, OURS) == 0
        await other.update([FeatureUpdate(TRANSACTION_VERSION, 1)], validate_only=False)
        await until(lambda: features.level(TRANSACTION_VERSION) == 1)
        assert features.epoch == 2

    run(scenario)


@pytest.mark.parametrize(
    "update",
    [
        FeatureUpdate("absent", 1),
        FeatureUpdate(TRANSACTION_VERSION, 3),
        FeatureUpdate(TRANSACTION_VERSION, -1),
        FeatureUpdate(TRANSACTION_VERSION, 0),
        FeatureUpdate(TRANSACTION_VERSION, 0, 9),
        FeatureUpdate(TRANSACTION_VERSION, 2, UpgradeType.SAFE_DOWNGRADE),
    ],
)
def test_a_level_that_a_feature_cannot_have_is_refused(update: FeatureUpdate) -> None:
    async def scenario(features: ClusterFeatures, _: ClusterFeatures, __: Any) -> None:
        await finalized(features, OURS, OLDER)
        with pytest.raises(InvalidFeatureUpdate):
            await features.update([update], validate_only=False)
        assert features.level(TRANSACTION_VERSION) == 1

    run(scenario)


def test_a_broker_that_does_not_support_a_level_holds_it_back() -> None:
    async def scenario(features: ClusterFeatures, _: ClusterFeatures, __: Any) -> None:
        await finalized(features, OURS, OLDER)
        with pytest.raises(InvalidFeatureUpdate, match="Broker 1 only supports versions 0-1"):
            await features.update([FeatureUpdate(TRANSACTION_VERSION, 2)], validate_only=False)

    run(scenario)
