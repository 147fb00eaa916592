"""The round trip of one record, ours beside Apache Kafka's: confluent-kafka, linger 0, acks 1.

A turn sends a block of single records to each contestant in every possible order, so that a noisy second of
the machine hits all of them and nobody always comes after the same one; the others stand still meanwhile.
Percentiles are taken turn by turn: their median and spread say how far a tail may be trusted, which one
number over everything does not. Beside the brokers runs the bare loop of `floor.py`: its tail is the
machine's and the client's own.

Everybody first serves 100,000 single requests: a JVM that had served 50,000 still had three times the p99 of
its later self, which would flatter us.

    python bench/broker/latency.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import os
import sys
import time
from itertools import permutations
from math import factorial
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.setting import Part, Setting, main
from brokers import BareLoop, Broker, held, running
from charts import curves
from harness import Figures
from results import Outcome, markdown_table, verdict
from stillness import PAUSE_MS, pauses_ms
from telling import Teller

TITLE = "latency"
TOPIC = "latency"
TURNS_PER_ROUND = 4
SENDS_PER_BLOCK = 2_000
QUICK_SENDS_PER_BLOCK = 200
WARM_UP_REQUESTS, QUICK_WARM_UP_REQUESTS = 100_000, 5_000
WARM_UP_REQUESTS_AT_ONCE = 100
WARM_UP_BLOCKS = 2
WATCH_SECONDS = 0.5
SENDS_PER_SETTLING_ONE = 10
"""A block begins with a tenth of its sends, not measured: whoever stood still is out of the caches."""
PERCENTILES = (50, 75, 90, 95, 99, 99.5, 99.9)
TOLD = (50, 99, 99.9)
VALUE = b"x" * 100
ANSWER_SECONDS = 30


def _producer(broker: Broker, **more: str | int) -> Producer:
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": broker.bootstrap,
        "broker.address.family": "v4",
        "socket.nagle.disable": True,
        "acks": 1,
        "linger.ms": 0,
    }
    return Producer(settings | more)


def warm_up(broker: Broker, requests: int) -> None:
    """Have it serve that many requests of one record, as fast as it can."""
    producer = _producer(broker, **{"batch.num.messages": 1})
    for _ in range(requests):
        while len(producer) > WARM_UP_REQUESTS_AT_ONCE:
            producer.poll(ANSWER_SECONDS)
        producer.produce(TOPIC, VALUE, partition=0, on_delivery=_check)
    producer.flush(ANSWER_SECONDS)


def _check(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise RuntimeError(f"the record was not taken: {error}")


class RoundTrips:
    """A producer that sends one record at a time and waits for its acknowledgement."""

    def __init__(self, broker: Broker) -> None:
        self._acknowledged = 0
        self._producer = _producer(broker)

    def block(self, sends: int) -> list[float]:
        """Milliseconds of each of that many sends."""
        times = []
        for _ in range(sends):
            started = time.perf_counter()
            self._one()
            times.append((time.perf_counter() - started) * 1000)
        return times

    def _one(self) -> None:
        wanted = self._acknowledged + 1
        self._producer.produce(TOPIC, VALUE, partition=0, on_delivery=self._on_delivery)
        while self._acknowledged < wanted:
            if not self._producer.poll(ANSWER_SECONDS):
                raise TimeoutError(f"no acknowledgement within {ANSWER_SECONDS} s")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        _check(error, message)
        self._acknowledged += 1

    def close(self) -> None:
        self._producer.flush(ANSWER_SECONDS)


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    last = len(ordered) - 1
    return {str(percent): ordered[round(last * percent / 100)] for percent in PERCENTILES}


class Contest:
    """Contestants with a client each, warmed, then measured turn by turn."""

    def __init__(self, contestants: tuple[Broker, ...], sends: int, tell: Teller) -> None:
        self._contestants = contestants
        self._sends = sends
        self._tell = tell
        for one in contestants:
            one.create_topic(TOPIC)
        self._clients = {one.name: RoundTrips(one) for one in contestants}

    def warm_up(self, requests: int) -> None:
        """Bring everybody to the speed that they keep: above all, the JVM compiles."""
        for one in self._contestants:
            self._tell.begin(f"warming {one.name}")
            warm_up(one, requests)
        for _ in range(WARM_UP_BLOCKS):
            for one in self._contestants:
                self._block(one, "warming")

    def turn(self) -> dict[str, dict[str, float]]:
        """A block to each in every order; the percentiles of each."""
        times: dict[str, list[float]] = {one.name: [] for one in self._contestants}
        for order in permutations(self._contestants):
            for one in order:
                times[one.name] += self._block(one, f"{self._sends} round trips to")
        return {name: percentiles(measured) for name, measured in times.items()}

    def _block(self, one: Broker, what: str) -> list[float]:
        self._tell.begin(f"{what} {one.name}")
        client = self._clients[one.name]
        with held(other for other in self._contestants if other is not one):
            client.block(self._sends // SENDS_PER_SETTLING_ONE)
            times = client.block(self._sends)
        self._tell.done()
        return times

    def close(self) -> None:
        for one in self._contestants:
            self._clients[one.name].close()
            one.delete_topic(TOPIC)


def measure(setting: Setting, brokers: tuple[Broker, ...]) -> Outcome:
    with running(BareLoop, directory=setting.directory / "bare loop") as bare_loops:
        return _measure(setting, (*brokers, *bare_loops))


def _measure(setting: Setting, contestants: tuple[Broker, ...]) -> Outcome:
    sends = QUICK_SENDS_PER_BLOCK if setting.is_quick else SENDS_PER_BLOCK
    warm_up_requests = QUICK_WARM_UP_REQUESTS if setting.is_quick else WARM_UP_REQUESTS
    turns = TURNS_PER_ROUND * setting.rounds
    blocks_per_turn = factorial(len(contestants))
    measured, pauses = [], []
    with Teller(TITLE, (WARM_UP_BLOCKS + turns * blocks_per_turn) * len(contestants)) as tell:
        contest = Contest(contestants, sends, tell)
        contest.warm_up(warm_up_requests)
        os.sync()  # what was written so far goes to the disk now, not while we measure
        for _ in range(turns):
            with held(contestants):
                pauses += pauses_ms(WATCH_SECONDS)
            measured.append(contest.turn())
        contest.close()
    watched_ms = turns * WATCH_SECONDS * 1000
    return {
        "turns": turns,
        "sends_per_turn": sends * blocks_per_turn,
        "milliseconds": {
            one.name: {
                str(percent): [turn[one.name][str(percent)] for turn in measured] for percent in PERCENTILES
            }
            for one in contestants
        },
        "pauses": {"per_second": len(pauses) * 1000 / watched_ms, "lost_share": sum(pauses) / watched_ms},
    }


def markdown(outcome: Outcome) -> str:
    times = {
        who: {percent: Figures(tuple(measured[str(percent)])) for percent in TOLD}
        for who, measured in outcome["milliseconds"].items()
    }
    rows = [[who, *(_cell(times[who][percent], 3) for percent in TOLD)] for who in times]
    ratios = {
        who: {percent: times[who][percent].over(times["Kafka"][percent]) for percent in TOLD}
        for who in times
        if who != "Kafka"
    }
    rows += [[f"{who} / Kafka", *(_cell(ratios[who][percent], 2) for percent in TOLD)] for who in ratios]
    ours, bare_loop, pauses = ratios["odradek"], ratios[BareLoop.name], outcome["pauses"]
    at_tail = f"{_cell(ours[99.9], 2)}; the bare loop {_cell(bare_loop[99.9], 2)}"
    return "\n".join(
        [
            f"Round trip of one record, ms: medians of {outcome['turns']} turns of "
            f"{outcome['sends_per_turn']:,} sends each:\n",
            markdown_table(["", *(f"p{percent}" for percent in TOLD)], rows),
            "",
            f"A process that only read the clock was held up for more than {PAUSE_MS} ms "
            f"{pauses['per_second']:.1f} times a second, {pauses['lost_share']:.1%} of its time.\n",
            verdict("p50 ≤ Kafka's", ours[50].median <= 1, _cell(ours[50], 2)),
            verdict("p99.9 ≤ 1/2 of Kafka's", ours[99.9].median <= 0.5, at_tail),
        ]
    )


def _cell(figures: Figures, digits: int) -> str:
    return f"{figures.median:.{digits}f} ± {figures.spread:.{digits}f}"


def plot(outcome: Outcome, plots: Path) -> None:
    places = range(len(PERCENTILES))
    curves(
        plots / "broker-latency.png",
        "round trip of one record: odradek beside Apache Kafka 4.3.1",
        {
            who: (list(places), [Figures(tuple(turns)).median for turns in measured.values()])
            for who, measured in outcome["milliseconds"].items()
        },
        x_label="percentile",
        y_label="ms",
        ticks=dict(zip(places, (f"p{percent}" for percent in PERCENTILES), strict=True)),
        is_logarithmic=True,
    )


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
