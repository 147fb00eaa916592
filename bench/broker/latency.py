"""The round trip of one record, ours beside Apache Kafka's: confluent-kafka, linger 0, acks 1.

A turn sends a block of single records to each candidate in every possible order, so that a noisy second of
the machine hits all of them and none always comes after the same one; the others are stopped meanwhile.
Percentiles are taken turn by turn: their median and spread say how far a tail may be trusted, which one
number over everything does not. Beside the brokers runs the bare loop of `bare_loop.py`: its tail is the
machine's and the client's own.

Everybody first serves 100,000 single requests: a JVM that had served 50,000 still had three times the p99 of
its later self, which would flatter us.

A piece of a block during which the host of a virtual machine took a processor away is measured again, whoever
it was sent to. Where the system allows it, all turns are taken twice: as the machine is, and with processors
that do not sleep between two requests, as servers for low latency are set up. The first also shows how long a
sleeping processor takes to wake up, three times a round trip; the second shows more of the brokers.

    python bench/broker/latency.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import permutations
from math import factorial
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.run_setup import Part, RunSetup, main
from brokers import BareLoop, Broker, held, running
from charts import curves
from harness import Figures, alternate
from progress import ProgressLine
from quiet_host import PAUSE_MS, can_keep_awake, pauses_ms, processors_awake, stolen_ticks
from results import BenchResult, markdown_table, verdict

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
"""A block begins with a tenth of its sends, not measured: a process that was stopped has left the caches."""
PERCENTILES = (50, 75, 90, 95, 99, 99.5, 99.9)
PERCENTILES = (50, 99, 99.9)
VALUE = b"x" * 100
ANSWER_SECONDS = 30
PIECES_PER_BLOCK, MAX_TRIES = 4, 10
AS_IT_IS, AWAKE = "as the machine is", "processors awake"
PROCESSOR_STATES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    AS_IT_IS: nullcontext,
    AWAKE: processors_awake,
}
PLOTS = {AS_IT_IS: "broker-latency.png", AWAKE: "broker-latency-awake.png"}


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
    """Candidates with a client each, warmed, then measured turn by turn."""

    def __init__(self, candidates: tuple[Broker, ...], sends: int, progress: ProgressLine) -> None:
        self._candidates = candidates
        self._sends = sends
        self._progress = progress
        for one in candidates:
            one.create_topic(TOPIC)
        self._clients = {one.name: RoundTrips(one) for one in candidates}
        self.disturbed_pieces = 0

    def warm_up(self, requests: int) -> None:
        """Warm up all candidates: above all, the JVM compiles."""
        for one in self._candidates:
            self._progress.begin(f"warming {one.name}")
            warm_up(one, requests)
        for _ in range(WARM_UP_BLOCKS):
            for one in self._candidates:
                self._block(one, "warming")

    def turn(self) -> dict[str, dict[str, float]]:
        """A block to each in every order; the percentiles of each."""
        times: dict[str, list[float]] = {one.name: [] for one in self._candidates}
        for order in permutations(self._candidates):
            for one in order:
                times[one.name] += self._block(one, f"{self._sends} round trips to")
        return {name: percentiles(measured) for name, measured in times.items()}

    def _block(self, one: Broker, what: str) -> list[float]:
        self._progress.begin(f"{what} {one.name}")
        client = self._clients[one.name]
        with held(other for other in self._candidates if other is not one):
            client.block(self._sends // SENDS_PER_SETTLING_ONE)
            pieces = [self._undisturbed(client) for _ in range(PIECES_PER_BLOCK)]
        self._progress.done()
        return [one for piece in pieces for one in piece]

    def _undisturbed(self, client: RoundTrips) -> list[float]:
        """The times of a piece that the host left alone; of the last one, if it leaves none alone."""
        for _ in range(MAX_TRIES):
            stolen = stolen_ticks()
            times = client.block(self._sends // PIECES_PER_BLOCK)
            if stolen_ticks() == stolen:
                break
            self.disturbed_pieces += 1
        return times

    def close(self) -> None:
        for one in self._candidates:
            self._clients[one.name].close()
            one.delete_topic(TOPIC)


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    with running(BareLoop, directory=setup.directory / "bare loop") as bare_loops:
        return _measure(setup, (*brokers, *bare_loops))


def _measure(setup: RunSetup, candidates: tuple[Broker, ...]) -> BenchResult:
    sends = QUICK_SENDS_PER_BLOCK if setup.is_quick else SENDS_PER_BLOCK
    warm_up_requests = QUICK_WARM_UP_REQUESTS if setup.is_quick else WARM_UP_REQUESTS
    turns = TURNS_PER_ROUND * setup.rounds
    blocks_per_turn = factorial(len(candidates))
    measured: dict[str, list[dict[str, dict[str, float]]]] = {state: [] for state in _processor_states()}
    pauses = []
    with ProgressLine(
        TITLE, (WARM_UP_BLOCKS + turns * len(measured) * blocks_per_turn) * len(candidates)
    ) as progress:
        contest = Contest(candidates, sends, progress)
        contest.warm_up(warm_up_requests)
        os.sync()  # what was written so far goes to the disk now, not while we measure
        for number in range(turns):
            with held(candidates):
                pauses += pauses_ms(WATCH_SECONDS)
            for state in alternate(tuple(measured), number):
                with PROCESSOR_STATES[state]():
                    measured[state].append(contest.turn())
        contest.close()
    watched_ms = turns * WATCH_SECONDS * 1000
    return {
        "turns": turns,
        "sends_per_turn": sends * blocks_per_turn,
        "disturbed_pieces": contest.disturbed_pieces,
        "sends_per_piece": sends // PIECES_PER_BLOCK,
        "processor states": {
            state: _by_candidate(turns_of_it, candidates) for state, turns_of_it in measured.items()
        },
        "pauses": {"per_second": len(pauses) * 1000 / watched_ms, "lost_share": sum(pauses) / watched_ms},
    }


def _processor_states() -> tuple[str, ...]:
    return tuple(PROCESSOR_STATES) if can_keep_awake() else (AS_IT_IS,)


def _by_candidate(turns: list[dict[str, dict[str, float]]], candidates: tuple[Broker, ...]) -> BenchResult:
    return {
        one.name: {str(percent): [turn[one.name][str(percent)] for turn in turns] for percent in PERCENTILES}
        for one in candidates
    }


def markdown(outcome: BenchResult) -> str:
    pauses = outcome["pauses"]
    return "\n".join(
        [
            f"Round trip of one record, ms: medians of {outcome['turns']} turns of "
            f"{outcome['sends_per_turn']:,} sends each:\n",
            *(_table(state, milliseconds) for state, milliseconds in outcome["processor states"].items()),
            f"Pieces of {outcome['sends_per_piece']} sends that were measured again, since the host took a "
            f"processor away: {outcome['disturbed_pieces']}. "
            f"A process that only read the clock was held up for more than {PAUSE_MS} ms "
            f"{pauses['per_second']:.1f} times a second, {pauses['lost_share']:.1%} of its time.\n",
            *(
                line
                for state, milliseconds in outcome["processor states"].items()
                for line in _verdicts(state, milliseconds)
            ),
        ]
    )


ByPercentile = dict[str, dict[float, Figures]]


def _times(milliseconds: BenchResult) -> ByPercentile:
    return {
        who: {percent: Figures(tuple(measured[str(percent)])) for percent in PERCENTILES}
        for who, measured in milliseconds.items()
    }


def _ratios(milliseconds: BenchResult) -> ByPercentile:
    times = _times(milliseconds)
    return {
        who: {percent: times[who][percent].over(times["Kafka"][percent]) for percent in PERCENTILES}
        for who in times
        if who != "Kafka"
    }


def _table(state: str, milliseconds: BenchResult) -> str:
    rows = [
        [who, *(_cell(times[percent], 3) for percent in PERCENTILES)]
        for who, times in _times(milliseconds).items()
    ]
    rows += [
        [f"{who} / Kafka", *(_cell(ratios[percent], 2) for percent in PERCENTILES)]
        for who, ratios in _ratios(milliseconds).items()
    ]
    return markdown_table([state, *(f"p{percent}" for percent in PERCENTILES)], rows) + "\n"


def _verdicts(state: str, milliseconds: BenchResult) -> tuple[str, str]:
    ratios = _ratios(milliseconds)
    ours, bare_loop = ratios["odradek"], ratios[BareLoop.name]
    at_tail = f"{_cell(ours[99.9], 2)}; the bare loop {_cell(bare_loop[99.9], 2)}"
    return (
        verdict(f"{state}: p50 ≤ Kafka's", ours[50].median <= 1, _cell(ours[50], 2)),
        verdict(f"{state}: p99.9 ≤ 1/2 of Kafka's", ours[99.9].median <= 0.5, at_tail),
    )


def _cell(figures: Figures, digits: int) -> str:
    return f"{figures.median:.{digits}f} ± {figures.spread:.{digits}f}"


def plot(outcome: BenchResult, plots: Path) -> None:
    places = range(len(PERCENTILES))
    for state, milliseconds in outcome["processor states"].items():
        curves(
            plots / PLOTS[state],
            f"round trip of one record, {state}: odradek beside Apache Kafka 4.3.1",
            {
                who: (list(places), [Figures(tuple(turns)).median for turns in measured.values()])
                for who, measured in milliseconds.items()
            },
            x_label="percentile",
            y_label="ms",
            ticks=dict(zip(places, (f"p{percent}" for percent in PERCENTILES), strict=True)),
            is_logarithmic=True,
        )


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
