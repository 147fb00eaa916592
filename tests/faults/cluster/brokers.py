"""Clusters of broker processes that faults are done to: odradek's on both stores, and Apache Kafka's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from confluent_kafka.cimpl import NewTopic

from faults.broker_process import BrokerProcess, free_port
from faults.cluster.worker import SILENT
from kafka_peer import PEERS
from kafka_peer import free_port as free_port_pair

# Many segments are rolled in a short run, and the first group is soon there.
FAULT_SETTINGS = {
    "offsets_topic_num_partitions": "6",
    "group_initial_rebalance_delay_ms": "500",
    "log_segment_bytes": "5000000",
}
NEWEST, WITH_TRANSACTIONS_V1 = "4.3.1", "3.9.2"
"""Versions of Apache Kafka."""
SMALL_HEAP, DEFAULT_HEAP = "400M", "1G"


class Node(Protocol):
    """One broker, over all its runs."""

    broker_id: int
    address: str
    log_dir: Path

    @property
    def pid(self) -> int: ...
    def launch(self) -> None: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def terminate(self) -> None: ...
    def log(self) -> str: ...


class OdradekNode:
    """`odradek start` with a broker id and a shared store."""

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        coordination: str,
        settings: dict[str, str],
        port: int | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.settings = {"broker.id": str(broker_id), "odradek.coordination": coordination, **settings}
        words = (f"{key}={value}" for key, value in self.settings.items())
        self._process = BrokerProcess(directory, *words, port=port)
        self.address = self._process.address
        self.log_dir = self._process.data

    @property
    def pid(self) -> int:
        assert self._process.process is not None
        return self._process.process.pid

    def launch(self) -> None:
        self._process.launch()

    def start(self) -> None:
        self._process.start()

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        code = self._process.terminate()
        assert code == 0, f"broker {self.broker_id} ended with {code}: {self.log()[-3000:]}"

    def log(self) -> str:
        return self._process.log()


class KafkaNode:
    """Apache Kafka, KRaft in combined mode."""

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        ports: dict[int, int],
        settings: dict[str, str],
        heap: str,
        version: str,
    ) -> None:
        self.broker_id = broker_id
        self.settings = settings
        self._directory = directory
        self._port = ports[broker_id]
        self.address = f"localhost:{self._port}"
        self.log_dir = directory / "logs"
        voters = ",".join(f"{number}@localhost:{port + 1000}" for number, port in ports.items())
        self._environment = {"NODE_ID": str(broker_id), "VOTERS": voters, "BROKERS": "0"}
        self._environment["KAFKA_VERSION"] = version
        self._environment["KAFKA_HEAP_OPTS"] = f"-Xmx{heap} -Xms{heap}"

    @property
    def pid(self) -> int:
        return int((self._directory / "pid").read_text())

    def launch(self) -> None:
        words = (f"{key}={value}" for key, value in self.settings.items())
        command = [str(PEERS / "start"), str(self._directory), str(self._port), *words]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | self._environment)

    def start(self) -> None:
        self.launch()

    def kill(self) -> None:
        subprocess.run([str(PEERS / "stop"), str(self._directory), "KILL"], check=True)

    def terminate(self) -> None:
        """SIGTERM; the last of a KRaft quorum does not end by that, and is killed."""
        done = subprocess.run([str(PEERS / "stop"), str(self._directory)], check=False, capture_output=True)
        if done.returncode:
            self.kill()

    def log(self) -> str:
        return (self._directory / "server.log").read_text(errors="replace")


class Brokers:
    """All brokers of a cluster; which of them run, and what the cluster says about its partitions."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = {node.broker_id: node for node in nodes}
        self.running: set[int] = set()
        self._admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap}, logger=SILENT)
        return self._admin

    def start_all(self) -> None:
        for node in self.nodes.values():
            node.launch()
            self.running.add(node.broker_id)
        wait_for(lambda: len(self.metadata().brokers) == len(self.nodes), "all brokers are registered", 90)

    def start(self, broker_id: int) -> None:
        self.nodes[broker_id].start()
        self.running.add(broker_id)

    def kill(self, broker_id: int) -> None:
        self.running.discard(broker_id)
        self.nodes[broker_id].kill()

    def terminate(self, broker_id: int) -> None:
        self.running.discard(broker_id)
        self.nodes[broker_id].terminate()

    def pause(self, broker_id: int) -> None:
        os.kill(self.nodes[broker_id].pid, signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        os.kill(self.nodes[broker_id].pid, signal.SIGCONT)

    def wipe(self, broker_id: int) -> None:
        """Remove everything that the broker has on its disk; it must not run."""
        assert broker_id not in self.running
        shutil.rmtree(self.nodes[broker_id].log_dir)

    def stop_all(self) -> None:
        for broker_id in sorted(self.running):
            self.terminate(broker_id)

    def end(self) -> None:
        """Whatever they do, it is over."""
        for broker_id in sorted(self.running):
            self.resume(broker_id)
            self.kill(broker_id)

    def metadata(self, seconds: float = 5) -> ClusterMetadata:
        return self.admin.list_topics(timeout=seconds)

    @property
    def controller(self) -> int:
        """The controller's id; -1 if nobody knows it."""
        return int(self.metadata().controller_id)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The leader's id; -1 if there is none."""
        return int(self.metadata().topics[topic].partitions[partition].leader)

    def create_topic(self, topic: str, partitions: int, replicas: int, **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        request = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=named)
        for result in self.admin.create_topics([request], request_timeout=30).values():
            result.result(40)
        self.wait_in_sync([topic])

    def wait_online(self, topics: list[str], seconds: float = 90) -> float:
        """How long it took until every partition had a leader that runs."""
        return wait_for(lambda: self._all_partitions(topics, self._is_led), f"{topics} are online", seconds)

    def wait_in_sync(self, topics: list[str], seconds: float = 120) -> float:
        """How long it took until all replicas were in sync."""
        return wait_for(lambda: self._are_well(topics), f"{topics} are in sync", seconds)

    def _are_well(self, topics: list[str]) -> bool:
        """Asked twice: the death of a broker that runs again may not be noticed yet."""
        for _ in range(2):
            everybody = len(self.metadata().brokers) == len(self.nodes)
            if not everybody or not self._all_partitions(topics, _is_in_sync):
                return False
            time.sleep(0.3)
        return True

    def _is_led(self, partition: object) -> bool:
        return partition.leader in self.running

    def _all_partitions(self, topics: list[str], holds: Callable[[object], bool]) -> bool:
        found = self.metadata().topics
        return all(
            topic in found and found[topic].partitions and all(map(holds, found[topic].partitions.values()))
            for topic in topics
        )


def _is_in_sync(partition: object) -> bool:
    return partition.leader >= 0 and set(partition.isrs) == set(partition.replicas)


def wait_for(holds: Callable[[], bool], what: str, seconds: float) -> float:
    """Seconds until the condition held; a cluster that does not answer does not hold it."""
    began = time.monotonic()
    while True:
        try:
            if holds():
                return time.monotonic() - began
        except KafkaException:
            pass
        assert time.monotonic() - began < seconds, f"waited {seconds} s in vain until {what}"
        time.sleep(0.1)


def odradek_brokers(directory: Path, count: int, coordination: str = "", **settings: str) -> Brokers:
    """With these settings and the defaults; on the embedded store in this directory if no other is given."""
    directory.mkdir(parents=True, exist_ok=True)
    store = coordination or f"sqlite:{directory / 'coordination.db'}"
    named = dotted(settings)
    return Brokers(
        [OdradekNode(number, directory / f"broker-{number}", store, named) for number in range(1, count + 1)]
    )


def kafka_brokers(
    directory: Path, count: int, *, heap: str = SMALL_HEAP, version: str = NEWEST, **settings: str
) -> Brokers:
    """With these settings and the defaults, but for the replicas of the offsets."""
    named = {"offsets.topic.replication.factor": str(min(3, count))} | dotted(settings)
    ports: dict[int, int] = {}
    while len(ports) < count:
        port = free_port_pair()
        if port not in ports.values():
            ports[len(ports) + 1] = port
    return Brokers(
        [KafkaNode(number, directory / f"broker-{number}", ports, named, heap, version) for number in ports]
    )


def dotted(settings: dict[str, str]) -> dict[str, str]:
    """Settings by their own names, of those written as keywords."""
    return {key.replace("_", "."): value for key, value in settings.items()}


__all__ = ["Brokers", "Node", "free_port", "kafka_brokers", "odradek_brokers", "wait_for"]
