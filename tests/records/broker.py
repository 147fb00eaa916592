"""A real Kafka broker for tests, and the few bytes of protocol that send it a batch as it is."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.common.error_codes import ErrorCode

PEERS = Path(__file__).parents[2] / "bench" / "peers"


@contextmanager
def kafka(directory: Path, *settings: str) -> Iterator[int]:
    """Apache Kafka in `directory` for the time of the block; its port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1] % 20000 + 20000
    subprocess.run([PEERS / "start", directory, str(port), *settings], check=True, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        subprocess.run([PEERS / "stop", directory, "KILL"], check=True)


def produce(port: int, topic: str, batch: bytes | bytearray) -> ErrorCode:
    """Send Produce, version 7 (the first with zstd), with `batch` for partition 0; the answer for it."""
    name = topic.encode()
    request = struct.pack(">hhih", 0, 7, 1, -1)  # api key, version, correlation id, no client id
    request += struct.pack(">hhi", -1, 1, 10_000)  # no transactional id, acks, timeout
    request += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    with socket.create_connection(("localhost", port)) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        response = stream.read(size)
    # correlation id, topics, name, partitions, index, error code
    (error_code,) = struct.unpack_from(">h", response, 4 + 4 + 2 + len(name) + 4 + 4)
    return ErrorCode(error_code)


def wait_for_topic(port: int, topic: str, batch: bytes | bytearray) -> None:
    """A new topic's leader takes a moment; until then the broker answers that it is not the one."""
    deadline = time.monotonic() + 30
    while produce(port, topic, batch) is not ErrorCode.NONE:
        if time.monotonic() > deadline:
            raise TimeoutError(topic)
        time.sleep(0.1)
