"""CPU microseconds of one produce or fetch request inside our broker, without sockets or clients.

A frame goes through the dispatcher again and again in this process. The least of many repetitions is
reported, which a busy machine can hardly disturb. Beside it stand what cannot be saved (decoding, the write
itself) and, with `--profile`, the functions that take the most, timed by the thread's own CPU clock. A fetch
ends with the parts of its response: file ranges, which are not sent. The last tables have requests that cost
more than the plain ones: acks=all with two followers, 1,000 ACLs, an open transaction.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
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
from broker import cost_variants as variants
from broker.fetch_loads import FETCH_LOADS, FetchLoad, Reader
from results import markdown_table
from wire import ask

TOPIC = "cost"
PRODUCE_VERSION = 9
REPETITIONS, CALLS = 100, 50
ATTEMPTS = 5
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
# Without the largest, whose gigabytes would keep the disk busy during the next rows.
VARIANT_LOADS = LOADS[:3]


class NoConnection:
    """Stands where a handler expects the connection that a request came by."""

    peer = "nobody"
    host = "127.0.0.1"
    state: Any = None
    is_closed = False

    def close(self, reason: str = "") -> None:
        raise AssertionError(f"the broker hung up: {reason}")


class Frame:
    """One produce request as it comes from the socket, and the place in it that the broker stamps."""

    def __init__(self, load: Load, topic: str = TOPIC, acks: int = 1) -> None:
        count, now_ms = load.records, time.time_ns() // 1_000_000
        values: list[bytes | None] = [os.urandom(load.record_bytes // 2).hex().encode() for _ in range(count)]
        batch = build_batch_from_columns([None] * count, values, [now_ms] * count, codec=load.codec)
        row = ProduceRequest.TopicData
        partition = row.PartitionData(index=0, records=bytes(batch))
        request = ProduceRequest(
            acks=acks, timeout_ms=30_000, topic_data=[row(name=topic, partition_data=[partition])]
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


def least_of_both(plain: Callable[[], object], variant: Callable[[], object]) -> tuple[float, float]:
    """The same for two calls, in turns, so that a busy machine disturbs both alike."""
    least = [float("inf"), float("inf")]
    for _ in range(REPETITIONS):
        for which, call in enumerate((plain, variant)):
            started = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            least[which] = min(least[which], (time.thread_time_ns() - started) / CALLS / 1000)
    return least[0], least[1]


class AnswerIsLate(Exception):
    """A fetch went to a thread, because the kernel had taken pages of the log away: there is no figure."""


def again_if_late(row: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Measure a row again when an answer was late; the reader brings the log into the page cache first."""

    def measured(costs: Costs, *loads: FetchLoad) -> list[str]:
        for _ in range(ATTEMPTS - 1):
            try:
                return row(costs, *loads)
            except AnswerIsLate:
                costs.forget_answers()
        return row(costs, *loads)

    return measured


def compared(name: str, plain: float, variant: float) -> list[str]:
    return [name, f"{plain:.1f}", f"{variant:.1f}", f"{variant - plain:+.1f}"]


class Costs:
    """The requests, handed to the dispatcher of a running broker. Lives on the broker's loop."""

    def __init__(self, server: BrokerServer, scratch: Path) -> None:
        self._server = server
        self._dispatcher = Dispatcher(server.services, "PLAINTEXT")
        self._answer: Any = None
        self.forget_answers()
        # Produces that wait, which do not hold up the fetches that they wait for.
        self._produced: list[Any] = []
        self._produces = ExchangeQueue(self._produced.append)
        self._authorizer = variants.authorizer_with_acls()
        self._connection = cast(Connection, NoConnection())
        self._file = os.open(scratch / "bare", os.O_WRONLY | os.O_CREAT)

    def forget_answers(self) -> None:
        """Begin with a new queue, in which no late answer is before the next ones."""
        self._answers: list[Any] = []
        self._exchanges = ExchangeQueue(self._answers.append)

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
        answer = b"".join(part.read() if isinstance(part, FilePart) else part for part in self._next_answer())
        _, response = decode_response(ApiKey.FETCH, version, answer[4:])
        assert isinstance(response, FetchResponse)
        return response

    def acks_all_row(self, load: Load) -> list[str]:
        """A produce with acks=1 beside one with acks=all, to a partition with two followers.

        After each append both followers fetch. What the same fetches cost when they bring nothing new is
        taken off, so that parking, committing and answering stay.
        """
        partition = variants.replicate(self._server)
        plain, all_in_sync = (Frame(load, variants.REPLICATED_TOPIC, acks) for acks in (1, -1))
        log, waiting = partition.log, self._server.services.waiting_produces
        at_end = next(variants.follower_fetches(partition, log.log_end_offset, 1))
        fetching = least_microseconds(lambda: self._fetch_all(at_end))
        # Between two appends of the one kind lies one of the other, in blocks of CALLS.
        first = log.log_end_offset + load.records * (CALLS + 1)
        fetches = variants.follower_fetches(partition, first, load.records)
        prepared = []
        for _ in range(REPETITIONS):
            prepared += [next(fetches) for _ in range(CALLS)]
            for _ in range(CALLS):
                next(fetches)
        frames = iter(prepared)

        def produce_to_all() -> None:
            all_in_sync.restore()
            self._dispatcher.handle(self._connection, all_in_sync.bytes, self._produces.begin())
            self._fetch_all(next(frames))
            waiting.run_woken()
            self._answer = self._produced.pop()

        alone, whole = least_of_both(lambda: self.handle(plain), produce_to_all)
        assert log.high_watermark == log.log_end_offset
        return compared(load.name, alone, whole - fetching)

    def authorized_produce_row(self, load: Load) -> list[str]:
        """A produce without an authorizer beside the same with one that has 1,000 ACLs."""
        frame = Frame(load)
        calls = (lambda: self.handle(frame), lambda: self._with_acls(lambda: self.handle(frame)))
        self._with_acls(lambda: self.check(frame))
        return compared(f"produce {load.name}", *least_of_both(*calls))

    @again_if_late
    def authorized_fetch_row(self, load: FetchLoad) -> list[str]:
        """The same for a fetch."""
        reader = Reader(self._server, load)
        reader.begin(self.ask_to_fetch)
        frames = reader.frames(2 * REPETITIONS * CALLS)
        calls = (
            lambda: self._fetch(next(frames)),
            lambda: self._with_acls(lambda: self._fetch(next(frames))),
        )
        return compared(f"fetch {load.name}", *least_of_both(*calls))

    def _with_acls(self, call: Callable[[], None]) -> None:
        services = self._server.services
        services.authorizer = self._authorizer
        call()
        services.authorizer = None

    @again_if_late
    def open_transaction_row(self, load: FetchLoad, plain_load: FetchLoad) -> list[str]:
        """Reading committed records from a log without transactions beside one with an open transaction."""
        calls = []
        for reader in (Reader(self._server, plain_load), variants.open_transaction(self._server, load)):
            reader.begin(self.ask_to_fetch)
            frames = reader.frames(REPETITIONS * CALLS)
            calls.append(partial(self._fetch_next, frames))
        return compared(plain_load.name, *least_of_both(*calls))

    def _fetch_next(self, frames: Iterator[memoryview]) -> None:
        self._fetch(next(frames))

    def _fetch_all(self, frames: list[memoryview]) -> None:
        for frame in frames:
            self._fetch(frame)

    def _fetch(self, frame: memoryview) -> None:
        self._dispatcher.handle(self._connection, frame, self._exchanges.begin())
        self._next_answer()

    def _next_answer(self) -> Any:
        if not self._answers:
            raise AnswerIsLate
        return self._answers.pop()

    @again_if_late
    def fetch_row(self, load: FetchLoad) -> list[str]:
        reader = Reader(self._server, load)
        reader.begin(self.ask_to_fetch)
        frames = reader.frames(REPETITIONS * CALLS)

        whole = least_microseconds(lambda: self._fetch(next(frames)))
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
    names = {TOPIC, *(load.topic for load in FETCH_LOADS), *variants.topics()}
    topics = [CreateTopicsRequest.Topics(name=name, num_partitions=1, replication_factor=1) for name in names]
    ask(port, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(timeout_ms=10_000, topics=topics))


def report_variants(costs: Costs) -> None:
    """Print the requests that cost more than plain ones, each beside its plain one."""
    rows = [costs.acks_all_row(one) for one in VARIANT_LOADS]
    print("\n" + markdown_table(["two followers in sync, us of CPU", "acks=1", "acks=all", "more"], rows))
    rows = [costs.authorized_produce_row(one) for one in VARIANT_LOADS]
    rows += [costs.authorized_fetch_row(one) for one in FETCH_LOADS]
    print("\n" + markdown_table(["us of CPU", "no authorizer", "1,000 ACLs", "more"], rows))
    pairs = zip(variants.OPEN_LOADS, FETCH_LOADS, strict=False)
    rows = [costs.open_transaction_row(*pair) for pair in pairs]
    print("\n" + markdown_table(["read_committed, us of CPU", "none", "a transaction open", "more"], rows))


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
        print(markdown_table(columns, [costs.fetch_row(one) for one in FETCH_LOADS]))
        report_variants(costs)
        if is_profiled:
            costs.profile(LOADS[1])
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What one request costs inside our broker.")
    parser.add_argument("--profile", action="store_true", help="also print which functions take the most")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(Path(scratch), options.profile))


if __name__ == "__main__":
    main()
