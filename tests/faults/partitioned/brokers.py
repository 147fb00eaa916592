"""Three brokers whose every connection goes through the network of network.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.broker_process import free_port
from faults.cluster.brokers import FAULT_SETTINGS, Brokers, Node, OdradekNode, dotted
from faults.partitioned.network import Network

COUNT = 3
TRANSACTION_SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
    "controller.socket.timeout.ms": "3000",
    "replica.socket.timeout.ms": "3000",
}


@contextmanager
def brokers_in_network(directory: Path) -> Iterator[tuple[Brokers, Network]]:
    """All brokers run, and nothing is cut."""
    nodes: list[Node] = []

    def pid_of() -> dict[int, int]:
        return {node.broker_id: node.pid for node in nodes if node.broker_id in brokers.running}

    brokers = Brokers(nodes)
    store = f"sqlite:{directory / 'coordination.db'}"
    with Network(pid_of) as network:
        for broker_id in range(1, COUNT + 1):
            port = free_port()
            proxy = network.add(broker_id, port)
            advertised = {"advertised.listeners": f"PLAINTEXT://{proxy}"}
            settings = dotted(FAULT_SETTINGS) | TRANSACTION_SETTINGS | advertised
            node = OdradekNode(broker_id, directory / f"broker-{broker_id}", store, settings, port)
            node.address = proxy
            nodes.append(node)
            brokers.nodes[broker_id] = node
        try:
            brokers.start_all()
            yield brokers, network
        finally:
            network.heal()
            brokers.end()
