"""What the parts of the active controller share: context, fenced writes, requests, watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.cluster.controller.channels import Channels
from odradek.cluster.controller.events import Event
from odradek.cluster.controller.fenced_store import FencedStore
from odradek.cluster.controller.requests import RequestBatch
from odradek.cluster.controller.state.context import ControllerContext
from odradek.cluster.controller.transitions import Transitions
from odradek.common.clock import Clock
from odradek.coordination.store import Store, Watcher, WatchEvent


@dataclass(slots=True, eq=False, repr=False)
class ControllerSession:
    """One controller epoch. Owned by the controller's event loop; writes fail once the epoch is raised."""

    context: ControllerContext
    fenced: FencedStore
    batch: RequestBatch
    channels: Channels
    transitions: Transitions
    notify: Callable[[Event], None]
    clock: Clock
    _watchers: dict[Event, Watcher] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """For reading; writes go through `fenced`."""
        return self.fenced.store

    def watcher(self, event: Event) -> Watcher:
        """A watcher that puts this event into the queue; one per event, so that watches do not accumulate."""
        if event not in self._watchers:

            def on_change(_: WatchEvent) -> None:
                self.notify(event)

            self._watchers[event] = on_change
        return self._watchers[event]

    def send_requests(self) -> None:
        """Send the collected requests to the channels."""
        for broker_id, request in self.batch.drain(self.context):
            self.channels.send(broker_id, request)
