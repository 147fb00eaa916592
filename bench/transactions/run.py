"""Transactions on our broker beside Apache Kafka: throughput and commit latency, also with many open ids.

    python bench/transactions/run.py [--rounds 5] [--quick] [--report]

The same two clients write to both brokers, one topic of one partition: ours (transactions v2) and librdkafka
(v1). One broker is measured at a time while the other stands still. A commit's latency is the time of the
call, with the records already delivered.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from confluent_kafka import Producer as Librdkafka

from brokers import Broker, Kafka, Odradek, held, running
from harness import Figures, alternate
from odradek import Producer, TopicPartition
from odradek.client.config import ClientConfig
from odradek.client.network.brokers import Brokers
from odradek.client.producer.transactions.requests import TransactionRequests
from progress import ProgressLine
from results import (
    CACHE,
    RESULTS,
    BenchResult,
    circumstances,
    geometric_mean,
    load,
    markdown_table,
    save,
    verdict,
)

TOPIC = "transactions"
RECORD = b"x" * 100
TRANSACTIONS = {1: 200, 100: 100, 10_000: 5}
"""How many are measured, by the number of records in one."""
OPEN_IDS, QUICK_OPEN_IDS = 10_000, 500
AT_ONCE = 50
CALL_TIMEOUT_MS = 60_000
OPEN_MS = 900_000
"""So long the open transactions stay open: longer than what is measured meanwhile takes."""
RECORDS_WHILE_OPEN = 100
RESULT_FILE = "transactions.json"

_names = count()


class Writer(NamedTuple):
    """What a client does, by any client's name for it."""

    begin: Callable[[], object]
    send: Callable[[], object]
    flush: Callable[[], object]
    commit: Callable[[], object]


@contextmanager
def our_client(bootstrap: str) -> Iterator[Writer]:
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"bench {next(_names)}") as one:
        one.init_transactions()
        yield Writer(
            one.begin_transaction, lambda: one.send(TOPIC, RECORD), one.flush, one.commit_transaction
        )


@contextmanager
def librdkafka(bootstrap: str) -> Iterator[Writer]:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"bench {next(_names)}", "linger.ms": 5}
    one = Librdkafka({**settings, "broker.address.family": "v4", "queue.buffering.max.messages": 1_000_000})
    one.init_transactions()
    yield Writer(one.begin_transaction, lambda: one.produce(TOPIC, RECORD), one.flush, one.commit_transaction)


CLIENTS = {"our client, v2": our_client, "librdkafka, v1": librdkafka}


def write(writer: Writer, records: int, transactions: int) -> BenchResult:
    """Records per second, and milliseconds of the commits."""
    commits = []
    started = time.perf_counter()
    for _ in range(transactions):
        writer.begin()
        for _ in range(records):
            writer.send()
        writer.flush()
        asked = time.perf_counter()
        writer.commit()
        commits.append((time.perf_counter() - asked) * 1000)
    rate = records * transactions / (time.perf_counter() - started)
    commits.sort()
    p99 = commits[min(len(commits) - 1, len(commits) * 99 // 100)]
    return {"rate": rate, "p50": statistics.median(commits), "p99": p99}


async def open_many(bootstrap: str, ids: int) -> float:
    """Open so many transactions of as many ids, `AT_ONCE` at a time; how many a second. They stay open."""
    brokers = Brokers(ClientConfig(bootstrap_servers=(bootstrap,)))
    names = iter([f"open {next(_names)}" for _ in range(ids)])

    async def work() -> None:
        for name in names:
            requests = TransactionRequests(brokers, name, CALL_TIMEOUT_MS)
            producer = await requests.init_producer_id(OPEN_MS)
            await requests.add_partitions(producer, [TopicPartition(TOPIC, 0)])

    started = time.perf_counter()
    try:
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    finally:
        await brokers.close()
    return ids / (time.perf_counter() - started)


def measure(rounds: int, *, is_quick: bool) -> BenchResult:
    shapes = {size: max(2, number // 10) if is_quick else number for size, number in TRANSACTIONS.items()}
    while_open = {RECORDS_WHILE_OPEN: shapes[RECORDS_WHILE_OPEN]}
    ids = QUICK_OPEN_IDS if is_quick else OPEN_IDS
    rows: dict[str, BenchResult] = {}
    rows_while_open: dict[str, BenchResult] = {}
    with tempfile.TemporaryDirectory() as place, running(Odradek, Kafka, directory=Path(place)) as brokers:
        for broker in brokers:
            broker.create_topic(TOPIC)
        steps = len(brokers) * (len(CLIENTS) * ((1 + rounds) * len(shapes) + rounds) + 1)
        with ProgressLine("transactions", steps) as progress:
            for number in range(-1, rounds):  # the first warms both up
                for broker in alternate(brokers, number):
                    with held(one for one in brokers if one is not broker):
                        _one_round(rows if number >= 0 else {}, broker, shapes, progress)
            opened = {}
            for broker in brokers:
                progress.begin(f"{broker.name}: {ids} open transactions")
                with held(one for one in brokers if one is not broker):
                    opened[broker.name] = asyncio.run(open_many(broker.bootstrap, ids))
                progress.done()
            for number in range(rounds):
                for broker in alternate(brokers, number):
                    with held(one for one in brokers if one is not broker):
                        _one_round(rows_while_open, broker, while_open, progress)
    return {
        "circumstances": circumstances(["confluent-kafka"]),
        "rounds": rounds,
        "rows": rows,
        "open_ids": ids,
        "opened": opened,
        "rows_while_open": rows_while_open,
    }


def _one_round(
    rows: dict[str, BenchResult], broker: Broker, shapes: dict[int, int], progress: ProgressLine
) -> None:
    """Add what each client does with each shape to the figures of its row."""
    for name, client in CLIENTS.items():
        with client(broker.bootstrap) as writer:
            for records, transactions in shapes.items():
                progress.begin(f"{broker.name}: {records} records a transaction by {name}")
                row = rows.setdefault(f"{records} records, {name}", {}).setdefault(broker.name, {})
                for what, value in write(writer, records, transactions).items():
                    row.setdefault(what, []).append(value)
                progress.done()


TITLES = (
    "odradek / Kafka",
    "records/s",
    "commit p50, ms",
    "commit p99, ms",
    "ratio records/s",
    "ratio p50",
)


def report(outcome: BenchResult) -> str:
    """The tables; the results of an earlier version may lack the later ones."""
    table, rate, latency = _compared(outcome["rows"])
    lines = [
        table,
        "",
        verdict("mean throughput ≥ 1x Kafka's", rate >= 1, f"{rate:.2f}"),
        verdict("mean commit p50 ≤ 1x Kafka's", latency <= 1, f"{latency:.2f}"),
    ]
    if opened := outcome.get("opened"):
        lines += [
            "",
            f"{outcome['open_ids']:,} open transactional ids, opened a second: "
            f"{opened['odradek']:,.0f} by odradek, {opened['Kafka']:,.0f} by Kafka.",
        ]
    if rows_while_open := outcome.get("rows_while_open"):
        lines += ["", "While they are open:", "", _compared(rows_while_open)[0]]
    return "\n".join(lines)


def _compared(rows: dict[str, BenchResult]) -> tuple[str, float, float]:
    """The table of these rows, and the means of their ratios of rate and of commit p50."""
    lines, rates, latencies = [], [], []
    for name, brokers in rows.items():
        ours, theirs = brokers["odradek"], brokers["Kafka"]
        figures = {what: (Figures(tuple(ours[what])), Figures(tuple(theirs[what]))) for what in ours}
        ratios = {what: one.over(other) for what, (one, other) in figures.items()}
        rates.append(ratios["rate"].median)
        latencies.append(ratios["p50"].median)
        cells = [f"{one.median:,.4g} / {other.median:,.4g}" for one, other in figures.values()]
        shown = [f"{ratios[what].median:.2f} ± {ratios[what].spread:.2f}" for what in ("rate", "p50")]
        lines.append([name, *cells, *shown])
    return markdown_table(TITLES, lines), geometric_mean(rates), geometric_mean(latencies)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a sanity check; its figures are not kept")
    parser.add_argument("--report", action="store_true", help="print the figures of the last run again")
    given = parser.parse_args()
    if given.report:
        print(report(load(RESULTS / RESULT_FILE)))
        return
    outcome = measure(given.rounds, is_quick=given.quick)
    save((CACHE if given.quick else RESULTS) / RESULT_FILE, outcome)
    print(report(outcome))


if __name__ == "__main__":
    main()
