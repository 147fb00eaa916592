"""Runs the tasks: every client library in turn, in changing order, round after round, on one broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from brokers import Broker
from clients.task import DEFAULT_BATCH_BYTES, LARGE_BATCH_BYTES, MOST_SECONDS, Measurement, Task
from harness import alternate
from processes import resident_bytes
from progress import ProgressLine
from results import MB, BenchResult

OURS, CONFLUENT = "odradek", "confluent-kafka"
MODULES = {OURS: "ours", CONFLUENT: "confluent", "aiokafka": "aio", "kafka-python": "kafka_python"}
WORKER = Path(__file__).with_name("worker.py")

RECORDS, QUICK_RECORDS = 1_000_000, 450_000
"""Enough that a quarter of them is more than one table of the largest kind."""
SLOWER = {
    "produce": {"aiokafka": 5, "kafka-python": 10},
    "consume": {"kafka-python": 4},
    "consume_table": {"kafka-python": 4},
    "produce_table": {"aiokafka": 5, "kafka-python": 10},
}
"""How many times fewer records a slow client gets in a task, so that its run is not minutes long."""
TABLE_ROWS = (10_000, 100_000)
SINGLE_SENDS, QUICK_SINGLE_SENDS = 3_000, 300
PERCENTILES = (50, 99)
LONG_READ_BYTES, QUICK_LONG_READ_BYTES = 10_000_000_000, 500_000_000
LONG_RECORD_BYTES = 1000
TIMES_READ = 10
LOOK_SECONDS = 0.25
KEPT_SAMPLES = 60


class Round:
    """The tasks of one broker; a quick one makes them small, for a sanity check."""

    def __init__(self, broker: Broker, rounds: int, progress: ProgressLine, *, is_quick: bool) -> None:
        self.broker = broker
        self.rounds = rounds
        self.progress = progress
        self.records = QUICK_RECORDS if is_quick else RECORDS
        self.sends = QUICK_SINGLE_SENDS if is_quick else SINGLE_SENDS
        self.long_read_bytes = QUICK_LONG_READ_BYTES if is_quick else LONG_READ_BYTES
        self._topics = 0

    def fresh_topic(self) -> str:
        self._topics += 1
        topic = f"clients{self._topics}"
        self.broker.create_topic(topic)
        return topic

    def filled_topic(self, records: int, record_bytes: int) -> str:
        """A topic to read from, written by confluent-kafka."""
        topic = self.fresh_topic()
        run_task(CONFLUENT, Task("produce", self.broker.bootstrap, topic, records, record_bytes))
        return topic

    def writing(self, kind: str, rows: int = 0, batch_bytes: int = LARGE_BATCH_BYTES) -> BenchResult:
        """Every library writes, each time to a topic of its own."""
        outcome: BenchResult = {who: {"rate": [], "cpu": []} for who in MODULES}
        for number in range(self.rounds):
            for who in alternate(list(MODULES), number):
                self.progress.begin(f"{self.broker.name}: {kind} by {who}")
                topic = self.fresh_topic()
                task = replace(self._task(kind, who, topic, rows), batch_bytes=batch_bytes)
                _note(outcome[who], run_task(who, task))
                self.broker.delete_topic(topic)
                self.progress.done()
        return outcome

    def reading(self, kind: str, topic: str, rows: int = 0) -> BenchResult:
        """Every library reads the same topic."""
        outcome: BenchResult = {who: {"rate": [], "cpu": []} for who in MODULES}
        for number in range(self.rounds):
            for who in alternate(list(MODULES), number):
                self.progress.begin(f"{self.broker.name}: {kind} by {who}")
                _note(outcome[who], run_task(who, self._task(kind, who, topic, rows)))
                self.progress.done()
        return outcome

    def _task(self, kind: str, who: str, topic: str, rows: int) -> Task:
        records = self.records // SLOWER.get(kind, {}).get(who, 1)
        return Task(kind, self.broker.bootstrap, topic, records, rows=rows)

    def single_sends(self, kind: str) -> BenchResult:
        """Milliseconds at the percentiles, over all rounds together."""
        times: dict[str, list[float]] = {who: [] for who in MODULES}
        for number in range(self.rounds):
            for who in alternate(list(MODULES), number):
                self.progress.begin(f"{self.broker.name}: {kind} by {who}")
                topic = self.fresh_topic()
                task = Task(kind, self.broker.bootstrap, topic, self.sends)
                measured = run_task(who, task).milliseconds
                times[who] += measured[len(measured) // 10 :]  # the first ones find everything cold
                self.broker.delete_topic(topic)
                self.progress.done()
        return {who: _percentiles(measured) for who, measured in times.items()}

    def memory(self) -> BenchResult:
        """Resident megabytes of our consumer and of confluent-kafka's, reading one topic over and over."""
        records = self.long_read_bytes // LONG_RECORD_BYTES
        topic = self.filled_topic(records // TIMES_READ, LONG_RECORD_BYTES)
        outcome: BenchResult = {"bytes": self.long_read_bytes, "resident_mb": {}}
        for who in (OURS, CONFLUENT):
            self.progress.begin(f"{self.broker.name}: long read by {who}")
            task = Task("consume_long", self.broker.bootstrap, topic, records, LONG_RECORD_BYTES)
            outcome["resident_mb"][who] = resident_over_time(who, task)
            self.progress.done()
        self.broker.delete_topic(topic)
        return outcome


def run_task(who: str, task: Task) -> Measurement:
    done = subprocess.run(
        _command(who, task), capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{who} failed at {task}:\n{done.stderr}")
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


def resident_over_time(who: str, task: Task) -> list[float]:
    samples: list[float] = []
    process = subprocess.Popen(_command(who, task), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        with suppress(LookupError):  # it ended just now
            samples.append(resident_bytes(process.pid) / MB)
        time.sleep(LOOK_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{who} failed at {task}")
    return samples[:: max(1, len(samples) // KEPT_SAMPLES)]


def _command(who: str, task: Task) -> list[str]:
    return [sys.executable, str(WORKER), MODULES[who], json.dumps(asdict(task))]


def _note(kept: BenchResult, measured: Measurement) -> None:
    """Million records a second, and CPU seconds for a million."""
    kept["rate"].append(measured.records / measured.seconds / 1e6)
    kept["cpu"].append(measured.cpu_seconds / measured.records * 1e6)


def _percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {str(percent): ordered[round((len(ordered) - 1) * percent / 100)] for percent in PERCENTILES}


def steps(rounds: int, with_memory: bool) -> int:
    kinds = 3 + 2 * len(TABLE_ROWS) + 2
    return kinds * rounds * len(MODULES) + (2 if with_memory else 0)


def measure(broker: Broker, rounds: int, *, is_quick: bool, with_memory: bool) -> BenchResult:
    """Everything on one broker."""
    with ProgressLine("clients", steps(rounds, with_memory)) as progress:
        one = Round(broker, rounds, progress, is_quick=is_quick)
        progress.begin(f"{broker.name}: filling a topic")
        topic = one.filled_topic(one.records, 100)
        outcome: BenchResult = {
            "produce": one.writing("produce"),
            "produce, default batches": one.writing("produce", batch_bytes=DEFAULT_BATCH_BYTES),
            "consume": one.reading("consume", topic),
        }
        for rows in TABLE_ROWS:
            outcome[f"produce tables of {rows:,}"] = one.writing("produce_table", rows)
            outcome[f"consume tables of {rows:,}"] = one.reading("consume_table", topic, rows)
        broker.delete_topic(topic)
        outcome["round trip"] = one.single_sends("round_trips")
        outcome["end to end"] = one.single_sends("end_to_end")
        if with_memory:
            outcome["memory"] = one.memory()
    return outcome
