"""ZooKeeper servers that faults are done to: one, or an ensemble of three, as processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from compat.java_tools import RUN_CLASS, WITH_ZOOKEEPER
from faults.broker_process import free_port

START_SECONDS = 60
HEAP = "-Xmx128M -XX:TieredStopAtLevel=1 -Xshare:auto"


def properties(directory: Path, port: int, ensemble: list[str]) -> list[str]:
    """The lines of a server's configuration. It syncs every transaction, as it does by default."""
    return [
        f"dataDir={directory / 'data'}",
        f"clientPort={port}",
        "tickTime=2000",
        "initLimit=10",
        "syncLimit=5",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr",
        *ensemble,
    ]


class ZooKeepers:
    """Servers by number, from 1."""

    def __init__(self, directory: Path, count: int = 1, *options: str) -> None:
        """`options` are for the JVMs."""
        self._directory = directory
        self._jvm = " ".join((HEAP, *options))
        self._ports = {number: free_port() for number in range(1, count + 1)}
        peers = {number: (free_port(), free_port()) for number in self._ports}
        self._ensemble = [
            f"server.{number}=127.0.0.1:{quorum}:{election}" for number, (quorum, election) in peers.items()
        ]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def connect(self) -> str:
        """host:port,..., as in zookeeper.connect."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def start_all(self) -> None:
        for number in self._ports:
            self.start(number)
        deadline = time.monotonic() + START_SECONDS
        while any(self.mode(number) is None for number in self._ports):
            assert time.monotonic() < deadline, f"ZooKeeper does not serve: see {self._directory}"
            time.sleep(0.1)

    def start(self, number: int) -> None:
        directory = self._directory / f"zookeeper-{number}"
        (directory / "data").mkdir(parents=True, exist_ok=True)
        (directory / "data" / "myid").write_text(f"{number}\n")
        ensemble = self._ensemble if len(self._ports) > 1 else []
        lines = properties(directory, self._ports[number], ensemble)
        (directory / "zookeeper.properties").write_text("\n".join(lines) + "\n")
        with (directory / "server.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [
                    str(RUN_CLASS),
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(directory / "zookeeper.properties"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"KAFKA_VERSION": WITH_ZOOKEEPER, "KAFKA_HEAP_OPTS": self._jvm},
            )

    def mode(self, number: int) -> str | None:
        """leader, follower or standalone; None if it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self._ports[number]), 2) as connection:
                connection.settimeout(2)
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return None
        found = re.search(rb"^Mode: (\w+)", said, re.MULTILINE)
        return found[1].decode() if found else None

    @property
    def leader(self) -> int:
        """The server that leads, or the only one."""
        return next(number for number in self._ports if self.mode(number) in ("leader", "standalone"))

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def pause_all(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGSTOP)

    def resume_all(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.resume_all()
        for number in list(self._processes):
            self.kill(number)
