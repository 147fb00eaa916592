"""A network over virtual time: connections that keep order, links that are slow or cut, hosts that die.

A connection behaves as TCP does: what was sent arrives once and in order, or the connection breaks. A cut
link holds what is sent until it is healed; a process that dies resets its connections; one that is
stopped receives everything when it resumes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from odradek.testing.simulation.virtual_time import SimulatedProcess, current_process

MEAN_DELAY_S = 0.0005
SLOW_SHARE = 0.02
SLOW_DELAY_S = 0.05

Accept = Callable[["ConnectionEnd"], None]


class ConnectionEnd:
    """One end of a connection. Owned by its process.

    `on_bytes` and `on_close` are called inside that process; `close` is idempotent.
    """

    def __init__(self, network: SimulatedNetwork, process: SimulatedProcess, host: str) -> None:
        self.network = network
        self.process = process
        self.host = host
        self.peer: ConnectionEnd
        self.on_bytes: Callable[[bytes], None] = lambda received: None
        self.on_close: Callable[[], None] = lambda: None
        self.is_closed = False
        self._arrives_at = 0.0

    def send(self, payload: bytes) -> None:
        """Have these bytes arrive at the other end, after everything sent before."""
        if not self.is_closed and not self.process.is_dead:
            self.network.deliver(self, lambda: self.peer.receive(payload))

    def receive(self, payload: bytes) -> None:
        """Bytes have arrived."""
        if not self.is_closed:
            self.on_bytes(payload)

    def close(self) -> None:
        """Close this end now, and the other one after the delay of the link."""
        if not self.is_closed:
            self.is_closed = True
            self.network.deliver(self, self.peer.closed_by_peer)
            self.network.connections.pop(self, None)

    def closed_by_peer(self) -> None:
        """The other end has closed, or its process has died."""
        if not self.is_closed:
            self.is_closed = True
            self.network.connections.pop(self, None)
            self.on_close()

    def next_arrival(self, delay_s: float) -> float:
        """The time at which what is sent now arrives, in order."""
        now_s = asyncio.get_running_loop().time()
        self._arrives_at = max(self._arrives_at, now_s + delay_s)
        return self._arrives_at


class SimulatedNetwork:
    """Hosts by name; each runs one process at a time. Owned by the simulation."""

    def __init__(self, seeded: random.Random) -> None:
        self._seeded = seeded
        self._accept: dict[tuple[str, int], tuple[SimulatedProcess, Accept]] = {}
        self._cut: set[tuple[str, str]] = set()
        self._held: list[tuple[ConnectionEnd, Callable[[], None]]] = []
        # In the order of their creation, so that a replay visits them alike.
        self.connections: dict[ConnectionEnd, None] = {}
        self.messages = 0

    def listen(self, host: str, port: int, process: SimulatedProcess, accept: Accept) -> None:
        """Accept connections to this address, inside this process."""
        self._accept[host, port] = (process, accept)

    def stop_listening(self, host: str, port: int) -> None:
        """Refuse connections to this address."""
        self._accept.pop((host, port), None)

    async def connect(self, source: str, host: str, port: int) -> ConnectionEnd:
        """Connect from the current process; ConnectionRefusedError if nobody listens."""
        process = current_process()
        assert process is not None, "only a simulated process connects"
        while (source, host) in self._cut or (host, source) in self._cut:
            await asyncio.sleep(0.1)
        await asyncio.sleep(self._delay_s())
        listener = self._accept.get((host, port))
        if listener is None or listener[0].is_dead:
            raise ConnectionRefusedError(f"nothing listens on {host}:{port}")
        near = ConnectionEnd(self, process, source)
        far = ConnectionEnd(self, listener[0], host)
        near.peer, far.peer = far, near
        self.connections[near] = self.connections[far] = None
        listener[0].call_soon(listener[1], far)
        return near

    def deliver(self, sender: ConnectionEnd, arrive: Callable[[], None]) -> None:
        """Call `arrive` inside the receiving process after the delay of the link, or when it is healed."""
        self.messages += 1
        if (sender.host, sender.peer.host) in self._cut:
            self._held.append((sender, arrive))
            return
        at_s = sender.next_arrival(self._delay_s())
        loop = asyncio.get_running_loop()
        loop.call_at(at_s, arrive, context=sender.peer.process.context.copy())

    @property
    def is_cut(self) -> bool:
        """Whether a link is cut."""
        return bool(self._cut)

    def cut(self, source: str, target: str) -> None:
        """Hold everything sent in this direction."""
        self._cut.add((source, target))

    def heal(self) -> None:
        """Let all links work again, and what was held arrive."""
        self._cut.clear()
        held, self._held = self._held, []
        for sender, arrive in held:
            self.deliver(sender, arrive)

    def process_died(self, process: SimulatedProcess) -> None:
        """Reset the connections of a process, and refuse new ones."""
        for address, (listener, _) in list(self._accept.items()):
            if listener is process:
                del self._accept[address]
        for end in [one for one in self.connections if one.process is process]:
            end.is_closed = True
            self.connections.pop(end, None)
            self.deliver(end, end.peer.closed_by_peer)

    def _delay_s(self) -> float:
        if self._seeded.random() < SLOW_SHARE:
            return self._seeded.random() * SLOW_DELAY_S
        return self._seeded.random() * 2 * MEAN_DELAY_S
