"""Apache Kafka itself, for tests that want to know whether it agrees."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PEERS = Path(__file__).resolve().parents[1] / "bench" / "peers"


@contextmanager
def running_kafka(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a broker that lives as long as the block."""
    port = free_port()
    given = [f"{key}={value}" for key, value in (settings or {}).items()]
    subprocess.run([str(PEERS / "start"), str(directory), str(port), *given], check=True, capture_output=True)
    try:
        yield f"localhost:{port}"
    finally:
        subprocess.run([str(PEERS / "stop"), str(directory)], check=True)


def restart_kafka(directory: Path, address: str) -> None:
    """Stop a broker that runs there and start it again at the same address; its leaders begin new epochs."""
    subprocess.run([str(PEERS / "stop"), str(directory)], check=True)
    port = address.rpartition(":")[2]
    subprocess.run([str(PEERS / "start"), str(directory), port], check=True, capture_output=True)


def free_port() -> int:
    """A port whose neighbour a thousand above is free as well: the controller listens there."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            if port < 60_000 and other.connect_ex(("127.0.0.1", port + 1000)):
                return port


@contextmanager
def running_kafka_cluster(directory: Path, *settings: str, brokers: int = 3) -> Iterator[str]:
    """The addresses of brokers 1, 2, ...; the first is the only controller."""
    addresses: list[str] = []
    ports: list[int] = []
    try:
        for node in range(1, brokers + 1):
            port = free_port()
            directory = directory / str(node)
            command = [str(PEERS / "start"), str(directory), str(port)]
            voters = f"1@localhost:{(ports or [port])[0] + 1000}"
            if ports:
                command += ["process.roles=broker", f"listeners=PLAINTEXT://localhost:{port}"]
            command += settings
            environment = {
                **os.environ,
                "NODE_ID": str(node),
                "VOTERS": voters,
                "KAFKA_HEAP_OPTS": "-Xms128M -Xmx384M",
            }
            subprocess.run(command, check=True, capture_output=True, env=environment)
            ports.append(port)
            addresses.append(f"localhost:{port}")
        yield ",".join(addresses)
    finally:
        for node in reversed(range(1, len(ports) + 1)):
            subprocess.run([str(PEERS / "stop"), str(directory / str(node))], check=True)
