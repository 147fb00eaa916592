"""The faults: each does something to the cluster, holds it for a while, and heals it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions

from faults.cluster.brokers import Brokers, wait_for
from faults.cluster.zookeepers import ZooKeepers
from odradek.client.admin.admin import Admin
from odradek.common.ids import TopicPartition

PAST_THE_SESSION_SECONDS = 25.0
"""zookeeper.session.timeout.ms is 18 s by default, and is not shortened here."""
ZOOKEEPER_AWAY_SECONDS = 60.0


@dataclass
class Scene:
    """What a fault is done to."""

    brokers: Brokers
    topic: str
    partitions: int
    random: Random
    zookeepers: ZooKeepers | None = None
    hold_seconds: tuple[float, float] = (1.0, 5.0)

    def hold(self) -> None:
        time.sleep(self.random.uniform(*self.hold_seconds))

    def a_leader(self) -> int:
        """The leader of some partition."""
        return self.brokers.leader(self.topic, self.random.randrange(self.partitions))


Kind = Callable[[Scene], str]
"""Does the fault and heals it; the target's name."""


def kill_leader(scene: Scene) -> str:
    leader = scene.a_leader()
    scene.brokers.kill(leader)
    scene.hold()
    scene.brokers.start(leader)
    return str(leader)


def kill_controller(scene: Scene) -> str:
    controller = scene.brokers.controller
    scene.brokers.kill(controller)
    scene.hold()
    scene.brokers.start(controller)
    return str(controller)


def kill_leader_and_controller(scene: Scene) -> str:
    """Both at once, two brokers where possible: with three brokers only one is left."""
    controller = scene.brokers.controller
    leaders = {scene.brokers.leader(scene.topic, number) for number in range(scene.partitions)}
    victims = [controller, *sorted(leaders - {controller})[:1]]
    for victim in victims:
        scene.brokers.kill(victim)
    scene.hold()
    for victim in victims:
        scene.brokers.nodes[victim].launch()
        scene.brokers.running.add(victim)
    return "+".join(map(str, victims))


def kill_two_in_turn(scene: Scene) -> str:
    """The second as soon as the first runs again, whether or not its replicas are in sync."""
    first, second = scene.random.sample(sorted(scene.brokers.nodes), 2)
    scene.brokers.kill(first)
    scene.hold()
    scene.brokers.start(first)
    scene.brokers.kill(second)
    scene.hold()
    scene.brokers.start(second)
    return f"{first},{second}"


def restart(scene: Scene) -> str:
    """Controlled shutdown and start."""
    leader = scene.a_leader()
    scene.brokers.terminate(leader)
    scene.brokers.start(leader)
    return str(leader)


def bounce(scene: Scene) -> str:
    """Killed and started again at once, within its session where the store keeps one."""
    leader = scene.a_leader()
    scene.brokers.kill(leader)
    scene.brokers.start(leader)
    return str(leader)


def wipe(scene: Scene) -> str:
    """The broker comes back under its old id with an empty disk."""
    return _wipe(scene, scene.a_leader())


def wipe_controller(scene: Scene) -> str:
    """On ZooKeeper it is registered again in the moment in which it ceases to be the controller."""
    return _wipe(scene, scene.brokers.controller)


def _wipe(scene: Scene, victim: int) -> str:
    scene.brokers.kill(victim)
    scene.brokers.wipe(victim)
    scene.hold()
    scene.brokers.start(victim)
    return str(victim)


def pause_leader(scene: Scene) -> str:
    """SIGSTOP past the session: the zombie wakes up as a leader that is none."""
    return _pause(scene, scene.a_leader())


def pause_controller(scene: Scene) -> str:
    return _pause(scene, scene.brokers.controller)


def _pause(scene: Scene, victim: int) -> str:
    scene.brokers.pause(victim)
    try:
        time.sleep(PAST_THE_SESSION_SECONDS)
    finally:
        scene.brokers.resume(victim)
    return str(victim)


def two_elections(scene: Scene) -> str:
    """The new leader is killed as soon as it is elected, while the old one starts."""
    partition = scene.random.randrange(scene.partitions)
    first = scene.brokers.leader(scene.topic, partition)
    scene.brokers.kill(first)
    scene.brokers.nodes[first].launch()
    scene.brokers.running.add(first)
    second = _next_leader(scene, partition, first)
    scene.brokers.kill(second)
    scene.hold()
    scene.brokers.start(second)
    return f"{first},{second}"


def _next_leader(scene: Scene, partition: int, before: int) -> int:
    def is_another() -> bool:
        return scene.brokers.leader(scene.topic, partition) not in (-1, before)

    try:
        wait_for(is_another, "another leader is elected", 30)
    except AssertionError:
        return scene.random.choice(sorted(set(scene.brokers.nodes) - {before}))
    return scene.brokers.leader(scene.topic, partition)


def kill_zookeeper_leader(scene: Scene) -> str:
    assert scene.zookeepers is not None
    leader = scene.zookeepers.leader
    scene.zookeepers.kill(leader)
    scene.hold()
    scene.zookeepers.start(leader)
    wait_for(lambda: scene.zookeepers.mode(leader) is not None, "ZooKeeper serves again", 60)
    return f"zookeeper {leader}"


def zookeeper_away(scene: Scene) -> str:
    """Paused past every session: clients are served meanwhile."""
    assert scene.zookeepers is not None
    scene.zookeepers.pause_all()
    try:
        time.sleep(ZOOKEEPER_AWAY_SECONDS)
    finally:
        scene.zookeepers.resume_all()
    return "all servers"


def delete_while_down(scene: Scene) -> str:
    """A topic is deleted while one of its brokers is down, and created again as soon as that is back.

    As in Kafka with ZooKeeper, the deletion waits for the broker; then the name is free.
    """
    topic = f"{scene.topic}-recreated"
    admin = scene.brokers.admin
    if topic not in scene.brokers.metadata().topics:
        scene.brokers.create_topic(topic, 3, min(3, len(scene.brokers.nodes)))
    victim = scene.brokers.leader(topic, 0)
    scene.brokers.kill(victim)
    scene.brokers.wait_online([topic])
    try:
        admin.delete_topics([topic], operation_timeout=1, request_timeout=30)[topic].result(40)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.REQUEST_TIMED_OUT:
            raise
    scene.brokers.start(victim)
    wait_for(lambda: topic not in scene.brokers.metadata().topics, f"{topic} is deleted", 60)
    wait_for(lambda: _can_create(scene, topic), f"{topic} can be created again", 60)
    return f"{topic}, broker {victim}"


def reassign(scene: Scene) -> str:
    """All partitions move to other brokers; where there are none, a replica goes and comes back."""
    ids = sorted(scene.brokers.nodes)
    now = scene.brokers.metadata().topics[scene.topic].partitions
    count = len(now[0].replicas)
    sizes = [count] if len(ids) > count else [max(1, count - 1), count]
    with Admin(bootstrap_servers=scene.brokers.bootstrap) as admin:
        for size in sizes:
            targets = {TopicPartition(scene.topic, number): scene.random.sample(ids, size) for number in now}
            for partition, error in admin.alter_partition_reassignments(targets).items():
                assert not isinstance(error, BaseException), f"{partition}: {error}"
            wait_for(lambda: not admin.list_partition_reassignments(), "the reassignment is done", 90)
    return f"{len(now)} partitions, in {len(sizes)} steps"


def grow_and_delete(scene: Scene) -> str:
    """A topic beside the measured one gets more partitions, and is deleted."""
    topic = f"{scene.topic}-grown"
    brokers = scene.brokers
    brokers.create_topic(topic, 2, min(3, len(brokers.nodes)))
    brokers.admin.create_partitions([NewPartitions(topic, 8)], request_timeout=30)[topic].result(40)
    wait_for(lambda: len(brokers.metadata().topics[topic].partitions) == 8, "eight partitions", 30)
    brokers.wait_in_sync([topic])
    brokers.admin.delete_topics([topic], request_timeout=30)[topic].result(40)
    wait_for(lambda: topic not in brokers.metadata().topics, f"{topic} is deleted", 60)
    return topic


def _can_create(scene: Scene, topic: str) -> bool:
    try:
        scene.brokers.create_topic(topic, 3, min(3, len(scene.brokers.nodes)))
    except KafkaException:
        return topic in scene.brokers.metadata().topics
    return True


KINDS: dict[str, Kind] = {
    "kill leader": kill_leader,
    "kill controller": kill_controller,
    "kill leader and controller": kill_leader_and_controller,
    "kill two in turn": kill_two_in_turn,
    "restart": restart,
    "bounce": bounce,
    "wipe": wipe,
    "wipe controller": wipe_controller,
    "pause leader": pause_leader,
    "pause controller": pause_controller,
    "two elections": two_elections,
    "delete while down": delete_while_down,
    "reassign": reassign,
    "grow and delete": grow_and_delete,
}
ZOOKEEPER_KINDS: dict[str, Kind] = {
    "kill ZooKeeper's leader": kill_zookeeper_leader,
    "ZooKeeper away": zookeeper_away,
}
