"""Reports whose settings were changed, from the notifications below /config/changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from odradek.cluster.change_notifications import ChangeNotifications
from odradek.common.clock import Clock
from odradek.coordination import paths
from odradek.coordination.paths import ConfigEntity
from odradek.coordination.payloads import decode_config_change
from odradek.coordination.store import Store


class ConfigChanges(ChangeNotifications):
    """Calls `on_change` once per notification, in order. Owned by the broker's event loop."""

    def __init__(
        self, store: Store, on_change: Callable[[ConfigEntity], Awaitable[None]], clock: Clock | None = None
    ) -> None:
        async def decode_and_report(payload: bytes) -> None:
            await on_change(decode_config_change(payload))

        super().__init__(store, paths.CONFIG_CHANGES, decode_and_report, clock)
