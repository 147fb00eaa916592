"""CPU microseconds of one produce or fetch request inside our broker, without sockets or clients.

A frame goes through the dispatcher again and again in this process. The least of many repetitions is told,
which a busy machine can hardly disturb. Beside it stand what cannot be saved (decoding, the write itself)
and, with `--profile`, the functions that take the most, timed by the thread's own CPU clock. A fetch ends
with the parts of its answer: file ranges, which are not sent.

    python bench/broker/request_cost.py [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvloop

from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.server import BrokerServer
from odradek.broker.settings.load import load
from odradek.common.error_codes import ErrorCode
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.net.send_queue import FilePart
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_request, decode_response, encode_request
from odradek.protocol.messages import CreateTopicsRequest, FetchResponse, ProduceRequest, ProduceResponse
from odradek.records.builder import build_batch_from_columns
from odradek.records.compression import Codec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.fetch_loads import FETCH_LOADS, FetchLoad, Reader
from results import markdown_table
from wire import ask

TOPIC = "cost"
PRODUCE_VERSION = 9
REPETITIONS, CALLS = 100, 50
STAMPED_BYTES = 16
"""Base offset, length and leader epoch: the broker writes there, so each call gets them back as they came."""
NO_LEADER_EPOCH_AND_MAGIC = b"\xff\xff\xff\xff\x02"


@dataclass(frozen=True)
class Load:
    name: str
    records: int
    record_bytes: int
    codec: Codec = Codec.NONE


LOADS = (
    Load("1 record of 100 B", 1, 100),
    Load("150 records of 100 B (16 KiB)", 150, 100),
    Load("150 records of 100 B, lz4", 150, 100, Codec.LZ4),
    Load("62 records of 1000 B (64 KiB)", 62, 1000),
)


class NoConnection:
    """Stands where a handler expects the connection that a request came by."""

    peer = "nobody"
    state: Any = None
    is_closed = False

    def close(self, reason: str = "") -> None:
        raise AssertionError(f"the broker hung up: {reason}")


class Frame:
    """One produce request as it comes from the socket, and the place in it that the broker stamps."""

    def __init__(self, load: Load) -> None:
        count, now_ms = load.records, time.time_ns() // 1_000_000
        values: list[bytes | None] = [os.urandom(load.record_bytes // 2).hex().encode() for _ in range(count)]
        batch = build_batch_from_columns([None] * count, values, [now_ms] * count, codec=load.codec)
        row = ProduceRequest.TopicData
        partition = row.PartitionData(index=0, records=bytes(batch))
        request = ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[row(name=TOPIC, partition_data=[partition])]
        )
        parts = encode_request(ApiKey.PRODUCE, PRODUCE_VERSION, 1, "producer", request)
        self.bytes = memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))
        start = bytes(self.bytes).index(NO_LEADER_EPOCH_AND_MAGIC) - 12
        self.stamped = slice(start, start + STAMPED_BYTES)
        self.batch = self.bytes[start : start + len(batch)]
        self._unstamped = bytes(self.bytes[self.stamped])

    def restore(self) -> None:
        self.bytes[self.stamped] = self._unstamped


def least_microseconds(call: Callable[[], object]) -> float:
    """CPU of one call by this thread's clock, the least of all repetitions."""
    least = float("inf")
    for _ in range(REPETITIONS):
        started = time.thread_time_ns()
        for _ in range(CALLS):
            call()
        least = min(least, (time.thread_time_ns() - started) / CALLS / 1000)
    return least


class Costs:
    """The requests, handed to the dispatcher of a running broker. Lives on the broker's loop."""

    def __init__(self, server: BrokerServer, scratch: Path) -> None:
        self._dispatcher = Dispatcher(server.services, "PLAINTEXT")
        self._answers: list[Any] = []
        self._answer: Any = None
        self._exchanges = ExchangeQueue(self._answers.append)
        self._connection = cast(Connection, NoConnection())
        self._file = os.open(scratch / "bare", os.O_WRONLY | os.O_CREAT)

    def handle(self, frame: Frame) -> None:
        frame.restore()
        self._dispatcher.handle(self._connection, frame.bytes, self._exchanges.begin())
        self._answer = self._answers.pop()

    def check(self, frame: Frame) -> None:
        """A refusal would be cheap, and no figure."""
        self.handle(frame)
        answer = b"".join(bytes(part) for part in self._answer)
        _, response = decode_response(ApiKey.PRODUCE, PRODUCE_VERSION, answer[4:])
        assert isinstance(response, ProduceResponse)
        error_code = response.responses[0].partition_responses[0].error_code
        assert error_code == ErrorCode.NONE, ErrorCode(error_code).name

    def row(self, load: Load) -> list[str]:
        frame = Frame(load)
        self.check(frame)
        whole = least_microseconds(lambda: self.handle(frame))
        decoding = least_microseconds(lambda: decode_request(frame.bytes))
        writing = least_microseconds(lambda: os.write(self._file, frame.batch))
        costs = (whole, decoding, writing, whole - decoding - writing)
        return [load.name, *(f"{cost:.1f}" for cost in costs)]

    def ask_to_fetch(self, version: int, frame: memoryview) -> FetchResponse:
        self._dispatcher.handle(self._connection, frame, self._exchanges.begin())
        answer = b"".join(part.read() if isinstance(part, FilePart) else part for part in self._answers.pop())
        _, response = decode_response(ApiKey.FETCH, version, answer[4:])
        assert isinstance(response, FetchResponse)
        return response

    def fetch_row(self, server: BrokerServer, load: FetchLoad) -> list[str]:
        reader = Reader(server, load)
        reader.begin(self.ask_to_fetch)
        frames = reader.frames(REPETITIONS * CALLS)

        def fetch() -> None:
            self._dispatcher.handle(self._connection, next(frames), self._exchanges.begin())
            self._answers.pop()

        whole = least_microseconds(fetch)
        (frame,) = reader.frames(1)
        decoding = least_microseconds(lambda: decode_request(frame))
        return [load.name, f"{whole:.1f}", f"{decoding:.1f}"]

    def profile(self, load: Load) -> None:
        frame = Frame(load)
        profiler = cProfile.Profile(time.thread_time)
        profiler.enable()
        for _ in range(CALLS * REPETITIONS):
            self.handle(frame)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def create_topics(port: int) -> None:
    names = {TOPIC, *(load.topic for load in FETCH_LOADS)}
    topics = [CreateTopicsRequest.Topics(name=name, num_partitions=1, replication_factor=1) for name in names]
    ask(port, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(timeout_ms=10_000, topics=topics))


async def measure(scratch: Path, is_profiled: bool) -> None:
    places = [f"log.dirs={scratch / 'data'}", "listeners=PLAINTEXT://127.0.0.1:0"]
    server = BrokerServer(load(None, places).config, on_fatal=print)
    await server.start()
    try:
        (address,) = server.addresses()
        await asyncio.to_thread(create_topics, int(address.rpartition(":")[2]))
        costs = Costs(server, scratch)
        columns = ["one produce request, us of CPU", "whole", "decode", "bare write", "the rest"]
        print(markdown_table(columns, [costs.row(one) for one in LOADS]), end="\n\n")
        columns = ["one fetch request, us of CPU", "whole", "decode by the schema"]
        print(markdown_table(columns, [costs.fetch_row(server, one) for one in FETCH_LOADS]))
        if is_profiled:
            costs.profile(LOADS[1])
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What one request costs inside our broker.")
    parser.add_argument("--profile", action="store_true", help="also tell which functions take the most")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(Path(scratch), options.profile))


if __name__ == "__main__":
    main()
