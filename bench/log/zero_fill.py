"""What zeroes written ahead of a growing log are worth (ADR 9): CPU of bare `pwrite` and `sendfile`.

python bench/log/zero_fill.py
"""

from __future__ import annotations

import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from odradek.log.files.preallocation import take_room
from reserved_memory import reserved_memory

TOTAL_BYTES = 200_000_000
STEP_BYTES = 4 << 20
READ_BYTES = 1 << 20
BATCH_BYTES = (64_000, 37_000, 16_000, 4_000)
PAVED_KIB = (0, 16, 32, 64, 128, 256, 1024)
ROUNDS = 5
ZEROES = bytes(PAVED_KIB[-1] << 10)


def write(path: str, batch: bytes, paved_bytes: int) -> float:
    """Make a log of such batches; CPU seconds for each write."""
    position = paved_end = room_end = count = 0
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    begun = time.thread_time()
    while position < TOTAL_BYTES:
        end = position + len(batch)
        if end + paved_bytes > room_end:
            take_room(fd, room_end, STEP_BYTES)
            room_end += STEP_BYTES
        if paved_bytes and end > paved_end:
            paved_end = -(-end // paved_bytes) * paved_bytes
            os.pwritev(fd, [batch, memoryview(ZEROES)[: paved_end - end]], position)
        else:
            os.pwrite(fd, batch, position)
        position = end
        count += 1
    spent = time.thread_time() - begun
    os.close(fd)
    return spent / count


def send(path: str) -> float:
    """Send the file to a thread that reads and forgets; CPU seconds of the sender for each byte."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        reader = socket.create_connection(listening.getsockname())
        sender, _ = listening.accept()

    def drain() -> None:
        buffer = bytearray(1 << 18)
        while reader.recv_into(buffer):
            pass

    draining = threading.Thread(target=drain)
    draining.start()
    with open(path, "rb") as file, sender:
        begun = time.thread_time()
        position = 0
        while position < TOTAL_BYTES:
            position += os.sendfile(sender.fileno(), file.fileno(), position, READ_BYTES)
        spent = time.thread_time() - begun
    draining.join()
    reader.close()
    return spent / position


def main() -> None:
    """One line for each size of batches and of zero filling."""
    with reserved_memory(), tempfile.TemporaryDirectory(prefix="odradek-bench-") as directory:
        path = os.path.join(directory, "0.log")
        for size in BATCH_BYTES:
            batch = os.urandom(size)
            writes: dict[int, list[float]] = {kib: [] for kib in PAVED_KIB}
            sends: dict[int, list[float]] = {kib: [] for kib in PAVED_KIB}
            for _ in range(ROUNDS):
                for kib in PAVED_KIB:
                    writes[kib].append(write(path, batch, kib << 10))
                    sends[kib].append(send(path))
                    os.unlink(path)
            for kib in PAVED_KIB:
                written = statistics.median(writes[kib]) * 1e6
                sent = statistics.median(sends[kib]) * 1e9
                print(
                    f"{size} bytes, zeroes to {kib} KiB: {written:.1f} us a write, sendfile {sent:.3f} s/GB"
                )


if __name__ == "__main__":
    main()
