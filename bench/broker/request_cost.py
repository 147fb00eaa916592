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
from itertools import count
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
# A difference between two calls needs more of them.
PAIR_REPETITIONS = 200
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

    peer = "none"
    host = "127.0.0.1"
    state: Any = None
    is_closed = False

    def close(self, reason: str = "") -> None:
        raise AssertionError(f"the broker hung up: {reason}")


class Frame:
    """One produce request as it comes from the socket, and the place in it that the broker stamps."""

    def __init__(self, load: Load, topic: str = TOPIC, acks: int = 1, sequence: int | None = None) -> None:
        """With a `sequence` it is part of the open transaction."""
        record_count, now_ms = load.records, time.time_ns() // 1_000_000
        values: list[bytes | None] = [
            os.urandom(load.record_bytes // 2).hex().encode() for _ in range(record_count)
        ]
        producer: dict[str, Any] = {}
        if sequence is not None:
            producer = {"producer_id": variants.PRODUCER_ID, "producer_epoch": 0, "is_transactional": True}
            producer["base_sequence"] = sequence
        batch = build_batch_from_columns(
            [None] * record_count, values, [now_ms] * record_count, codec=load.codec, **producer
        )
        row = ProduceRequest.TopicData
        partition = row.PartitionData(index=0, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=None if sequence is None else variants.TRANSACTIONAL_ID,
            acks=acks,
            timeout_ms=30_000,
            topic_data=[row(name=topic, partition_data=[partition])],
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


def least_of_both(
    plain: Callable[[], object],
    variant: Callable[[], object],
    prepare: Callable[[bool], None] = lambda is_variant: None,
) -> tuple[float, float]:
    """The same for two calls, in turns, so that a busy machine disturbs both alike.

    `prepare` is called before each block of calls and not measured.
    """
    least = [float("inf"), float("inf")]
    for _ in range(PAIR_REPETITIONS):
        for which, call in enumerate((plain, variant)):
            prepare(which == 1)
            started = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            least[which] = min(least[which], (time.thread_time_ns() - started) / CALLS / 1000)
    return least[0], least[1]


class ResponseIsLate(Exception):
    """A fetch went to a thread, because the kernel had taken pages of the log away: there is no figure."""


def again_if_late(row: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Measure a row again when an answer was late; the reader brings the log into the page cache first."""

    def measured(costs: Costs, *loads: FetchLoad) -> list[str]:
        for _ in range(ATTEMPTS - 1):
            try:
                return row(costs, *loads)
            except ResponseIsLate:
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
        self._check_answer(self._answer)

    def _check_answer(self, parts: Any) -> None:
        _, response = decode_response(
            ApiKey.PRODUCE, PRODUCE_VERSION, b"".join(bytes(part) for part in parts)[4:]
        )
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

    @again_if_late
    def acks_all_row(self, load: Load, is_busy: bool) -> list[str]:
        """A produce with acks=1 and two fetches of followers, beside the same with acks=all.

        If `is_busy`, these fetches bring the batch just appended, and commit the one before, as behind a
        producer that does not wait for answers. Else they ask for what follows the batch, and commit it. So
        each call appends and commits a batch; with acks=all it parks a produce and completes one as well.
        """
        partition = variants.replicate(self._server)
        plain, all_in_sync = (Frame(load, variants.REPLICATED_TOPIC, acks) for acks in (1, -1))
        waiting = self._server.services.waiting_produces
        produced: list[Any] = []
        # Produces that wait do not hold up the fetches that they wait for.
        produces = ExchangeQueue(produced.append)

        def produce_to_leader() -> None:
            plain.restore()
            self._dispatcher.handle(self._connection, plain.bytes, self._exchanges.begin())
            self._answer = self._answers.pop()
            self._fetch_all(next(fetches))

        def produce_to_all() -> None:
            all_in_sync.restore()
            self._dispatcher.handle(self._connection, all_in_sync.bytes, produces.begin())
            self._fetch_all(next(fetches))
            waiting.run_woken()
            self._answer = produced.pop()

        log = partition.log
        if is_busy:
            # The first call completes this produce.
            self._dispatcher.handle(self._connection, all_in_sync.bytes, produces.begin())
        first = log.log_end_offset + (0 if is_busy else load.records)
        endless = variants.follower_fetches(partition, first, load.records)
        fetches = iter([next(endless) for _ in range(2 * PAIR_REPETITIONS * CALLS)])
        costs = least_of_both(produce_to_leader, produce_to_all)
        assert not produced
        self._check_answer(self._answer)
        assert log.log_end_offset - log.high_watermark == (load.records if is_busy else 0)
        fetched = self.ask_to_fetch(*variants.fetch_of_a_follower(partition, log.high_watermark))
        assert bool(fetched.responses[0].partitions[0].records) == is_busy
        if is_busy:
            self._fetch_all(variants.fetches_of_followers(partition, log.log_end_offset))
        return compared(f"{load.name}, {'busy' if is_busy else 'alone'}", *costs)

    def begin_transaction(self) -> Iterator[int]:
        """The sequences of the records that follow the first one of a transaction."""
        variants.begin_transaction(self._server, variants.TRANSACTIONAL_TOPIC)
        return count(1)

    def transactional_produce_row(self, load: Load, sequences: Iterator[int]) -> list[str]:
        """A produce without a producer id beside one of a transaction that is open in the partition.

        A batch of a producer can be sent but once, so that both have new frames all the time.
        """
        made: list[Frame] = []

        def make(is_transactional: bool) -> None:
            chosen = sequences if is_transactional else None
            made[:] = reversed([self._next_frame(load, chosen) for _ in range(CALLS)])

        self.check(self._next_frame(load, None))
        self.check(self._next_frame(load, sequences))
        costs = least_of_both(*[lambda: self.handle(made.pop())] * 2, make)
        self._check_answer(self._answer)
        return compared(f"produce {load.name}", *costs)

    def _next_frame(self, load: Load, sequences: Iterator[int] | None) -> Frame:
        """With `sequences` the next batch of the producer whose transaction is open."""
        if sequences is None:
            return Frame(load, variants.TRANSACTIONAL_TOPIC)
        sequence, *_ = [next(sequences) for _ in range(load.records)]
        return Frame(load, variants.TRANSACTIONAL_TOPIC, sequence=sequence)

    def authorized_produce_row(self, load: Load) -> list[str]:
        """A produce without an authorizer beside the same with one that has 1,000 ACLs."""
        frame = Frame(load)
        self._use_acls(True)
        self.check(frame)
        costs = least_of_both(*[lambda: self.handle(frame)] * 2, self._use_acls)
        self._use_acls(False)
        return compared(f"produce {load.name}", *costs)

    @again_if_late
    def authorized_fetch_row(self, load: FetchLoad) -> list[str]:
        """The same for a fetch."""
        self._use_acls(False)
        reader = Reader(self._server, load)
        reader.begin(self.ask_to_fetch)
        frames = reader.frames(2 * PAIR_REPETITIONS * CALLS)
        costs = least_of_both(*[partial(self._fetch_next, frames)] * 2, self._use_acls)
        self._use_acls(False)
        return compared(f"fetch {load.name}", *costs)

    def _use_acls(self, is_authorized: bool) -> None:
        self._server.services.authorizer = self._authorizer if is_authorized else None

    @again_if_late
    def open_transaction_row(self, load: FetchLoad, plain_load: FetchLoad) -> list[str]:
        """Reading committed records from a log without transactions beside one with an open transaction."""
        calls = []
        for reader in (Reader(self._server, plain_load), variants.open_transaction(self._server, load)):
            reader.begin(self.ask_to_fetch)
            frames = reader.frames(PAIR_REPETITIONS * CALLS)
            calls.append(partial(self._fetch_next, frames))
        return compared(plain_load.name, *least_of_both(*calls))

    @again_if_late
    def aborted_row(self, load: FetchLoad, plain_load: FetchLoad) -> list[str]:
        """Reading committed records beside the same with aborted transactions in what is read."""
        calls = []
        for one in (plain_load, load):
            reader = Reader(self._server, one)
            reader.begin(self.ask_to_fetch)
            calls.append(partial(self._fetch_next, reader.frames(PAIR_REPETITIONS * CALLS)))
        return compared(load.name, *least_of_both(*calls))

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
            raise ResponseIsLate
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


def report_plain(costs: Costs) -> None:
    """Print what plain requests cost, and what of that cannot be saved."""
    columns = ["one produce request, us of CPU", "whole", "decode", "bare write", "the rest"]
    print(markdown_table(columns, [costs.row(one) for one in LOADS]), end="\n\n")
    columns = ["one fetch request, us of CPU", "whole", "decode by the schema"]
    print(markdown_table(columns, [costs.fetch_row(one) for one in FETCH_LOADS]), end="\n\n")


def report_replicated(costs: Costs) -> None:
    """Print acks=all beside acks=1, each with the fetches of two followers."""
    columns = ["a produce and two fetches of followers, us of CPU", "acks=1", "acks=all", "more"]
    rows = [costs.acks_all_row(one, is_busy) for is_busy in (True, False) for one in VARIANT_LOADS]
    print(markdown_table(columns, rows), end="\n\n")


def report_authorized(costs: Costs) -> None:
    """Print requests that an authorizer checks beside the same without one."""
    rows = [costs.authorized_produce_row(one) for one in VARIANT_LOADS]
    rows += [costs.authorized_fetch_row(one) for one in FETCH_LOADS]
    print(markdown_table(["us of CPU", "no authorizer", "1,000 ACLs", "more"], rows), end="\n\n")


def report_transactions(costs: Costs) -> None:
    """Print requests with transactions beside the same without."""
    sequences = costs.begin_transaction()
    rows = [costs.transactional_produce_row(load, sequences) for load in VARIANT_LOADS]
    print(markdown_table(["us of CPU", "no producer id", "in a transaction", "more"], rows), end="\n\n")
    pairs = zip(variants.OPEN_LOADS, FETCH_LOADS, strict=False)
    rows = [costs.open_transaction_row(*pair) for pair in pairs]
    print(
        markdown_table(["read_committed, us of CPU", "none", "a transaction open", "more"], rows), end="\n\n"
    )
    plain = [load for load in FETCH_LOADS if load.records_per_batch > 1]
    rows = [costs.aborted_row(*pair) for pair in zip(variants.ABORTED_LOADS, plain, strict=False)]
    print(markdown_table(["read_committed, us of CPU", "none", "aborted transactions", "more"], rows))


TABLES = {
    "plain": report_plain,
    "replicated": report_replicated,
    "authorized": report_authorized,
    "transactions": report_transactions,
}


async def measure(scratch: Path, tables: list[str], is_profiled: bool) -> None:
    places = [f"log.dirs={scratch / 'data'}", "listeners=PLAINTEXT://127.0.0.1:0"]
    server = BrokerServer(load(None, places).config, on_fatal=print)
    await server.start()
    try:
        (address,) = server.addresses()
        await asyncio.to_thread(create_topics, int(address.rpartition(":")[2]))
        costs = Costs(server, scratch)
        for table in tables:
            TABLES[table](costs)
        if is_profiled:
            costs.profile(LOADS[1])
    finally:
        await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What one request costs inside our broker.")
    parser.add_argument("--profile", action="store_true", help="also print which functions take the most")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="default: all")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(Path(scratch), options.tables, options.profile))


if __name__ == "__main__":
    main()
