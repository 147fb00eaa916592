"""The round trip of one record, ours beside Apache Kafka's: confluent-kafka, linger 0, acks 1.

Blocks of single sends to each broker in turn, so that a noisy second of the machine hits both.

    python bench/broker/latency.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.setting import Part, Setting, main
from brokers import Broker
from charts import curves
from harness import alternate
from results import Outcome, markdown_table, verdict
from telling import Teller

TITLE = "latency"
TOPIC = "latency"
BLOCKS_PER_ROUND = 4
SENDS_PER_BLOCK = 2_500
QUICK_SENDS_PER_BLOCK = 500
WARM_UP_SENDS = 5_000
PERCENTILES = (50, 75, 90, 95, 99, 99.5, 99.9)
TOLD = (50, 99, 99.9)
VALUE = b"x" * 100
ANSWER_SECONDS = 30


class RoundTrips:
    """A producer that sends one record at a time and waits for its acknowledgement."""

    def __init__(self, broker: Broker) -> None:
        self._acknowledged = 0
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "broker.address.family": "v4",
                "socket.nagle.disable": True,
                "acks": 1,
                "linger.ms": 0,
            }
        )

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
        if error is not None:
            raise RuntimeError(f"the record was not taken: {error}")
        self._acknowledged += 1

    def close(self) -> None:
        self._producer.flush(ANSWER_SECONDS)


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    last = len(ordered) - 1
    return {str(percent): ordered[round(last * percent / 100)] for percent in PERCENTILES}


def measure(setting: Setting, brokers: tuple[Broker, ...]) -> Outcome:
    sends = QUICK_SENDS_PER_BLOCK if setting.is_quick else SENDS_PER_BLOCK
    blocks = BLOCKS_PER_ROUND * setting.rounds
    times: dict[str, list[float]] = {broker.name: [] for broker in brokers}
    with Teller(TITLE, blocks * len(brokers)) as tell:
        clients = {}
        for broker in brokers:
            tell.begin(f"warming {broker.name}")
            broker.create_topic(TOPIC)
            clients[broker.name] = RoundTrips(broker)
            clients[broker.name].block(sends if setting.is_quick else WARM_UP_SENDS)
        for number in range(blocks):
            for broker in alternate(brokers, number):
                tell.begin(f"{sends} round trips to {broker.name}")
                times[broker.name] += clients[broker.name].block(sends)
                tell.done()
        for broker in brokers:
            clients[broker.name].close()
            broker.delete_topic(TOPIC)
    return {
        "sends": blocks * sends,
        "milliseconds": {name: percentiles(measured) for name, measured in times.items()},
    }


def markdown(outcome: Outcome) -> str:
    times = outcome["milliseconds"]
    rows = [[who, *(f"{times[who][str(percent)]:.3f}" for percent in TOLD)] for who in times]
    ratios = {percent: times["odradek"][str(percent)] / times["Kafka"][str(percent)] for percent in TOLD}
    rows.append(["ratio", *(f"{ratio:.2f}" for ratio in ratios.values())])
    return "\n".join(
        [
            f"Round trip of one record, ms, {outcome['sends']:,} sends each:\n",
            markdown_table(["", *(f"p{percent}" for percent in TOLD)], rows),
            "",
            verdict("p50 ≤ Kafka's", ratios[50] <= 1, f"{ratios[50]:.2f}"),
            verdict("p99.9 ≤ 1/2 of Kafka's", ratios[99.9] <= 0.5, f"{ratios[99.9]:.2f}"),
        ]
    )


def plot(outcome: Outcome, plots: Path) -> None:
    places = range(len(PERCENTILES))
    curves(
        plots / "broker-latency.png",
        "round trip of one record: odradek beside Apache Kafka 4.3.1",
        {who: (list(places), list(times.values())) for who, times in outcome["milliseconds"].items()},
        x_label="percentile",
        y_label="ms",
        ticks=dict(zip(places, (f"p{percent}" for percent in PERCENTILES), strict=True)),
        is_logarithmic=True,
    )


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
