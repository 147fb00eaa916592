"""What a schedule does to a simulated cluster: each fault begins at a moment and is healed later."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import StoreError
from odradek.coordination.payloads import ControllerRegistration, PartitionStateNode, TopicAssignment
from odradek.coordination.store import SessionState
from odradek.testing.simulation.brokers import LARGEST_CLOCK_SKEW_MS, SimulatedBroker
from odradek.testing.simulation.cluster import SimulatedCluster
from odradek.transactions.partitions import TRANSACTION_STATE

SESSION_TIMEOUT_S = 6.0

Fault = Callable[[], Awaitable[None]]


class Faults:
    """The faults of one run, drawn from the cluster's seed. `done` counts them by kind."""

    def __init__(self, cluster: SimulatedCluster, partitions: list[TopicPartition]) -> None:
        self._cluster = cluster
        self._seeded = cluster.seeded
        self._partitions = partitions
        self.done: Counter[str] = Counter()
        self._repairs: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        # Faults that lose data must not meet each other: "any single failure".
        self._kinds: dict[str, tuple[int, Fault]] = {
            "kill": (6, self._kill),
            "power cut": (3, self._cut_power),
            "wipe": (2, self._wipe),
            "stop in order": (2, self._stop_in_order),
            "pause": (4, self._pause),
            "expire": (3, self._expire),
            "suspend": (2, self._suspend),
            "cut link": (4, self._cut_link),
            "isolate": (2, self._isolate),
            "depose": (2, self._depose),
        }

    def add(self, kinds: Mapping[str, tuple[int, Fault]]) -> None:
        """Let these happen too, with their weights; a kind counts in `done` if it was possible."""
        self._kinds.update(kinds)

    def state(self, partition: TopicPartition) -> PartitionStateNode | None:
        """Leader and ISR of a partition as the store has them."""
        node = self._cluster.ensemble.find(paths.partition_state(partition))
        return None if node is None else PartitionStateNode.decode(node.payload)

    def is_whole(self) -> bool:
        """Whether every broker runs and every replica is in sync."""
        brokers = self._cluster.brokers
        if any(not broker.is_healthy for broker in brokers.values()) or self._cluster.network.is_cut:
            return False
        replicas = dict.fromkeys(self._partitions, len(brokers)) | self.other_partitions()
        for partition, count in replicas.items():
            state = self.state(partition)
            if state is None or state.leader not in state.isr or len(state.isr) < count:
                return False
        return True

    def other_partitions(self) -> dict[TopicPartition, int]:
        """The partitions of topics that came later, as the store has them, with the number of replicas."""
        known = {partition.topic for partition in self._partitions}
        found = {}
        for path, node in self._cluster.ensemble.nodes.items():
            topic = path.removeprefix(f"{paths.TOPICS}/")
            if path.startswith(f"{paths.TOPICS}/") and "/" not in topic and topic not in known:
                assignment = TopicAssignment.decode(node.payload)
                for index, one in assignment.partitions.items():
                    found[TopicPartition(topic, index)] = len(one.replicas)
        return found

    async def inject(self) -> str:
        """Begin a fault that is possible now, and return its kind."""
        names = list(self._kinds)
        weights = [self._kinds[name][0] for name in names]
        while True:
            (name,) = self._seeded.choices(names, weights)
            before = self.done.total()
            await self._kinds[name][1]()
            if self.done.total() > before:
                return name
            await asyncio.sleep(0.5)

    async def heal_due(self, *, everything: bool = False) -> None:
        """Heal what is due, or everything."""
        now_s = asyncio.get_running_loop().time()
        # A repair may have another one follow.
        while due := [repair for repair in self._repairs if everything or repair[0] <= now_s]:
            self._repairs = [repair for repair in self._repairs if repair not in due]
            for _, heal in due:
                await heal()

    def heal_later(self, longest_s: float, heal: Callable[[], Awaitable[None]]) -> None:
        """Call `heal` after at most this time."""
        after_s = 0.1 + self._seeded.random() ** 2 * longest_s
        self._repairs.append((asyncio.get_running_loop().time() + after_s, heal))

    def _victim(self) -> SimulatedBroker | None:
        """A healthy broker: often a leader or the controller; one at least stays up."""
        healthy = [broker for broker in self._cluster.brokers.values() if broker.is_healthy]
        if len(healthy) < 2:
            return None
        draw = self._seeded.random()
        wanted = -1
        if draw < 0.4:
            state = self.state(self._seeded.choice(self._partitions))
            wanted = -1 if state is None else state.leader
        elif draw < 0.6:
            wanted = self.controller_id()
        for broker in healthy:
            if broker.broker_id == wanted:
                return broker
        return self._seeded.choice(healthy)

    def controller_id(self) -> int:
        """The broker registered as controller; -1 if there is none."""
        node = self._cluster.ensemble.find(paths.CONTROLLER)
        return -1 if node is None else ControllerRegistration.decode(node.payload).broker_id

    async def _kill(self) -> None:
        broker = self._victim()
        if broker is not None:
            self.done["kill"] += 1
            broker.kill()
            self.heal_later(10, lambda: self._revive(broker))

    async def kill_leader(self, partition: TopicPartition) -> None:
        """Kill the leader of a partition, if there is one, and start it again later."""
        state = self.state(partition)
        broker = None if state is None else self._cluster.brokers.get(state.leader)
        if broker is not None and broker.is_up:
            self.done["kill"] += 1
            broker.kill()
            self.heal_later(10, lambda: self._revive(broker))

    async def _cut_power(self) -> None:
        broker = self._victim()
        if broker is not None and self.is_whole():
            self.done["power cut"] += 1
            broker.kill(power_cut=True)
            self.heal_later(5, lambda: self._revive_alone(broker))

    async def _wipe(self) -> None:
        broker = self._victim()
        if broker is not None and self.is_whole():
            self.done["wipe"] += 1
            broker.kill()
            broker.disk.wipe()
            self.heal_later(5, lambda: self._revive_alone(broker))

    async def _stop_in_order(self) -> None:
        broker = self._victim()
        if broker is not None:
            self.done["stop in order"] += 1
            stopping = asyncio.ensure_future(broker.stop())
            await asyncio.wait([stopping], timeout=30)
            if not stopping.done():
                broker.kill()
            self.heal_later(5, lambda: self._revive(broker))

    async def _pause(self) -> None:
        broker = self._victim()
        if broker is not None:
            self.done["pause"] += 1
            broker.pause(SESSION_TIMEOUT_S)
            self.heal_later(15, lambda: self._resume(broker))

    async def _expire(self) -> None:
        broker = self._victim()
        if broker is not None and broker.session is not None:
            self.done["expire"] += 1
            broker.expire_session()

    async def _suspend(self) -> None:
        broker = self._victim()
        session = None if broker is None else broker.session
        if session is not None and session.state is SessionState.CONNECTED:
            self.done["suspend"] += 1
            broker.suspend_session()  # type: ignore[union-attr]
            longest_s = SESSION_TIMEOUT_S * 1.5

            async def end() -> None:
                if broker is not None and broker.session is session:
                    broker.end_suspension(is_expired=self._seeded.random() < 0.5)

            self.heal_later(longest_s, end)

    async def _cut_link(self) -> None:
        source, target = self._seeded.sample(list(self._cluster.brokers.values()), 2)
        self.done["cut link"] += 1
        self._cluster.network.cut(source.host, target.host)
        self.heal_later(12, self._heal_network)

    async def _isolate(self) -> None:
        """Cut a broker from the other brokers, but neither from clients nor from the store."""
        broker = self._victim()
        if broker is not None:
            self.done["isolate"] += 1
            for other in self._cluster.brokers.values():
                if other is not broker:
                    self._cluster.network.cut(broker.host, other.host)
                    self._cluster.network.cut(other.host, broker.host)
            self.heal_later(12, self._heal_network)

    async def hold_markers_back(self) -> None:
        """Cut a transaction coordinator from the leader of a partition, then let another one take over.

        What the first one has sent meanwhile arrives when the link is healed.
        """
        state_partitions = [one for one in self.other_partitions() if one.topic == TRANSACTION_STATE]
        if not state_partitions:
            return
        coordinating, leading = (
            self.state(self._seeded.choice(among)) for among in (state_partitions, self._partitions)
        )
        if coordinating is None or leading is None:
            return
        coordinator = self._cluster.brokers.get(coordinating.leader)
        leader = self._cluster.brokers.get(leading.leader)
        if coordinator is None or leader is None or coordinator is leader or not coordinator.is_healthy:
            return
        self.done["hold markers back"] += 1
        self._cluster.network.cut(coordinator.host, leader.host)

        async def take_over() -> None:
            coordinator.expire_session()
            self.heal_later(6, self._heal_network)

        # By then the leader is not in the ISR of the coordinator's topic: transactions go on without it.
        after_s = 8 + self._seeded.random() * 3
        self._repairs.append((asyncio.get_running_loop().time() + after_s, take_over))

    async def _depose(self) -> None:
        self.done["depose"] += 1
        with contextlib.suppress(StoreError):  # there is no controller at this moment
            await self._cluster.ensemble.open_session().delete(paths.CONTROLLER)

    async def _heal_network(self) -> None:
        self._cluster.network.heal()

    async def _revive(self, broker: SimulatedBroker) -> None:
        if not broker.is_up:
            skews_ms = [0, 0, -LARGEST_CLOCK_SKEW_MS, LARGEST_CLOCK_SKEW_MS]
            broker.start(clock_skew_ms=self._seeded.choice(skews_ms))

    async def _revive_alone(self, broker: SimulatedBroker) -> None:
        """Start it, and let it catch up: another failure before would be a second one."""
        await self._revive(broker)
        for _ in range(600):
            if self.is_whole():
                return
            await asyncio.sleep(0.1)

    async def _resume(self, broker: SimulatedBroker) -> None:
        broker.resume()
