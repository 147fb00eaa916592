"""Features of the cluster (KIP-584): what every broker supports, and the level at which each is switched on.

/feature    the finalized levels; the version of the node is their epoch

Every broker registers the levels that it supports. A feature that is not in the node yet is finalized at the
highest level that all registered brokers support; afterwards only UpdateFeatures changes it. Level 0 is off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from odradek.cluster.membership.brokers import Broker
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination import paths
from odradek.coordination.errors import (
    BadVersion,
    DamagedPayload,
    NodeExists,
    NoNode,
    SessionExpired,
    StoreClosed,
    StoreError,
)
from odradek.coordination.payloads import FinalizedFeatures
from odradek.coordination.store import Store, WatchEvent

logger = logging.getLogger(__name__)

TRANSACTION_VERSION = "transaction.version"
SUPPORTED: Mapping[str, tuple[int, int]] = MappingProxyType({TRANSACTION_VERSION: (0, 2)})
NO_EPOCH = -1
RETRY_S = 0.5


class UpgradeType(IntEnum):
    """What an update of a feature may do."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level that a feature should have."""

    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class InvalidFeatureUpdate(KafkaError):
    """A feature cannot have that level."""

    error_code = ErrorCode.INVALID_UPDATE_VERSION

    def __init__(self, update: FeatureUpdate, reason: str) -> None:
        super().__init__(
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {update.level} for feature {update.feature}. {reason}"
        )


def finalized_at_first(levels: Mapping[str, int], brokers: Iterable[Broker]) -> dict[str, int]:
    """The features that can be finalized now, with their levels: those that all brokers support."""
    registered = list(brokers)
    found = {}
    for feature, (_, own_high) in SUPPORTED.items():
        if feature in levels or not registered:
            continue
        highs = [broker.features[feature][1] for broker in registered if feature in broker.features]
        if len(highs) == len(registered):
            found[feature] = min(own_high, *highs)
    return found


def check_update(update: FeatureUpdate, current: int, brokers: Iterable[Broker]) -> None:
    """InvalidFeatureUpdate unless the feature may be changed from `current` to that level."""
    if update.feature not in SUPPORTED:
        raise InvalidFeatureUpdate(update, "No broker supports this feature.")
    if update.level < 0:
        raise InvalidFeatureUpdate(update, "A feature version cannot be less than 0.")
    if update.upgrade_type not in list(UpgradeType):
        raise InvalidFeatureUpdate(update, "The controller does not support the given upgrade type.")
    low, high = SUPPORTED[update.feature]
    if not low <= update.level <= high:
        raise InvalidFeatureUpdate(update, f"Only versions {low}-{high} are supported.")
    for broker in brokers:
        lowest, highest = broker.features.get(update.feature, (0, 0))
        if not lowest <= update.level <= highest:
            raise InvalidFeatureUpdate(
                update, f"Broker {broker.broker_id} only supports versions {lowest}-{highest}."
            )
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        raise InvalidFeatureUpdate(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise InvalidFeatureUpdate(update, "Can't downgrade to a newer version.")


class ClusterFeatures:
    """The finalized features as this broker knows them. Owned by the broker, on its loop."""

    def __init__(self, store: Callable[[], Store]) -> None:
        """`store` returns the current session: this object is used by several sessions in turn."""
        self._store = store
        self._brokers: Mapping[int, Broker] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_stale = False
        self.levels: Mapping[str, int] = {}
        self.epoch = NO_EPOCH

    def level(self, feature: str) -> int:
        """The finalized level; 0 if the feature is not finalized."""
        return self.levels.get(feature, 0)

    def highest_level(self, broker_id: int, feature: str) -> int:
        """The highest level that a broker supports; 0 if it is not registered or has named none."""
        broker = self._brokers.get(broker_id)
        return 0 if broker is None else broker.features.get(feature, (0, 0))[1]

    async def load(self) -> None:
        """Read the finalized features and watch them, in the current session."""
        store = self._store()
        try:
            node = await store.get(paths.FEATURE, self._changed)
            finalized = FinalizedFeatures.decode(node.payload)
        except NoNode:
            await store.exists(paths.FEATURE, self._changed)
            self.levels, self.epoch = {}, NO_EPOCH
        except DamagedPayload as damage:
            logger.error("the finalized features cannot be read: %s", damage)
        else:
            self.levels, self.epoch = dict(finalized.levels), node.stat.version

    def brokers_changed(self, brokers: Mapping[int, Broker]) -> None:
        """The registered brokers have changed, or this one has a new session."""
        self._brokers = brokers
        self._is_stale = True
        self._reload_soon()

    async def finalize(self) -> None:
        """Finalize what all registered brokers support by now."""
        await self.load()
        found = finalized_at_first(self.levels, self._brokers.values())
        if found:
            await self._write(lambda levels: {**found, **levels})
            logger.info("finalized features: %s", self.levels)

    async def update(self, updates: Iterable[FeatureUpdate], *, validate_only: bool) -> None:
        """Change levels, all of them or none; InvalidFeatureUpdate if one is refused."""

        def changed(levels: Mapping[str, int]) -> Mapping[str, int]:
            result = dict(levels)
            for update in updates:
                check_update(update, levels.get(update.feature, 0), self._brokers.values())
                result[update.feature] = update.level
            return result

        if validate_only:
            changed(self.levels)
        else:
            await self._write(changed)

    async def _write(self, change: Callable[[Mapping[str, int]], Mapping[str, int]]) -> None:
        """Change the node; again if another broker was first."""
        store = self._store()
        while True:
            await self.load()
            payload = FinalizedFeatures(change(self.levels)).encode()
            try:
                if self.epoch == NO_EPOCH:
                    await store.create(paths.FEATURE, payload)
                else:
                    await store.set(paths.FEATURE, payload, self.epoch)
            except (BadVersion, NodeExists, NoNode):
                continue
            await self.load()
            return

    def _changed(self, _: WatchEvent) -> None:
        """The node has changed: read it again, in order."""
        self._is_stale = True
        self._reload_soon()

    def _reload_soon(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        while self._is_stale:
            self._is_stale = False
            try:
                await self.finalize()
            except (SessionExpired, StoreClosed):
                return  # they are read again in the next session
            except StoreError as error:
                logger.warning("the finalized features cannot be read just now: %s", error)
                await asyncio.sleep(RETRY_S)
                self._is_stale = True

    def stop(self) -> None:
        """Stop following changes."""
        if self._task is not None:
            self._task.cancel()
