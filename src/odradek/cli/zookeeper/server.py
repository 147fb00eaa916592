"""One ZooKeeper server as a process: its configuration, its start, and the pid file that `stop` reads."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from odradek.cli.connecting import Failed

DEFAULT_DATA_DIR = "odradek-zookeeper"
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
PATIENCE_S = 60
_POLL_S = 0.05


def start(data_dir: Path, host: str, port: int, class_path: str) -> int:
    """Start a server and return its pid when it serves; Failed with the end of its log if it does not."""
    java = shutil.which("java")
    if java is None:
        raise Failed("ZooKeeper needs Java: `apt install default-jre-headless`")
    running = running_pid(data_dir)
    if running is not None:
        raise Failed(
            f"a server already runs in {data_dir} (pid {running}); `odradek zookeeper stop` stops it"
        )
    data_dir.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Failed(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    config = data_dir / "zookeeper.properties"
    config.write_text(_config(data_dir, host, port))
    command = [java, "-Xmx256M", "-cp", class_path, MAIN_CLASS, str(config)]
    with (data_dir / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    _pid_file(data_dir).write_text(f"{process.pid}\n")
    deadline = time.monotonic() + PATIENCE_S
    while not _serves(host, port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            _pid_file(data_dir).unlink()
            end = (data_dir / "server.log").read_text(errors="replace").strip()[-1000:]
            raise Failed(f"ZooKeeper did not start; the end of {data_dir / 'server.log'}:\n{end}")
        time.sleep(_POLL_S)
    return process.pid


def stop(data_dir: Path) -> int:
    """Stop the server of this directory and return its pid; Failed if none runs."""
    pid = running_pid(data_dir)
    if pid is None:
        raise Failed(f"no server runs in {data_dir}")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while _is_server(pid):
        if time.monotonic() > deadline:
            raise Failed(f"the server (pid {pid}) did not stop within {PATIENCE_S} s")
        time.sleep(_POLL_S)
    _pid_file(data_dir).unlink(missing_ok=True)
    return pid


def running_pid(data_dir: Path) -> int | None:
    """The pid of the server of this directory, if it runs."""
    try:
        pid = int(_pid_file(data_dir).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return pid if _is_server(pid) else None


def _is_server(pid: int) -> bool:
    """Whether this pid is a running ZooKeeper: after a reboot it may belong to anything."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and MAIN_CLASS.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _config(data_dir: Path, host: str, port: int) -> str:
    # maxClientCnxns=0 is without a limit; ruok, srvr and mntr are for people.
    lines = [
        f"dataDir={(data_dir / 'data').absolute()}",
        f"clientPortAddress={host}",
        f"clientPort={port}",
        "tickTime=2000",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=ruok,srvr,mntr",
    ]
    return "\n".join(lines) + "\n"


def _serves(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=5) as connection:
        connection.sendall(b"srvr")
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
        return b"Mode: " in answer
    return False


def _pid_file(data_dir: Path) -> Path:
    return data_dir / "pid"
