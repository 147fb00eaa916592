"""Throughput and broker CPU per gigabyte, ours beside Apache Kafka's and a bare loop: same clients, one run.

Every row is one shape of records and batches. A round sends the same records to each candidate in turn, in
changing order, into a topic of its own that is deleted afterwards; the topics of the last round are then read
by a consumer, thrice as often. The others are stopped while one is measured, and
when a run begins, nothing is left to be written to the disk, and what is read stays in memory. A gigabyte
is 10**9 bytes of record values before compression. CPU is that of the broker's process with all its threads,
from before the client starts until it has ended.

    python bench/broker/throughput.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.load import Shape, consume, produce, write_payloads
from broker.run_setup import Part, RunSetup, main
from brokers import BareLoop, Broker, held, running
from charts import Goal, Ratios, ratio_panels
from harness import Figures, alternate
from locked_pages import locked_in_memory
from progress import ProgressLine
from results import GB, MB, BenchResult, geometric_mean, markdown_table, verdict

TITLE = "throughput"
BARE_LOOP = BareLoop.name
RECORDS = {100: 1_500_000, 1000: 300_000}
QUICK_RECORDS = {100: 200_000, 1000: 40_000}
BATCHES = ((16 * 1024, 5), (64 * 1024, 10))
"""Bytes and linger: the defaults of the Java client, and large ones."""
SHAPES = [
    Shape(record_bytes, batch_bytes, linger_ms, codec, partitions)
    for record_bytes, (batch_bytes, linger_ms), codec, partitions in product(
        (100, 1000), BATCHES, ("none", "lz4"), (1, 6)
    )
]
QUICK_SHAPES = [SHAPES[0], SHAPES[-1]]
WARM_UP_SHAPES = [SHAPES[0], SHAPES[3], SHAPES[8], SHAPES[15]]
READS_PER_ROUND = 3
"""A read is short, and so its figures are less sure."""
DIRECTIONS = ("produce", "consume")
CPU_GOAL = 0.5
FLOOR_GOAL = 1.5
MEAN_GOAL = 1.05


class Rows:
    """Measures row after row on warm brokers."""

    def __init__(self, setup: RunSetup, brokers: tuple[Broker, ...], progress: ProgressLine) -> None:
        self.setup = setup
        self.brokers = brokers
        self.progress = progress
        self.records = QUICK_RECORDS if setup.is_quick else RECORDS
        self.payloads = {size: write_payloads(setup.directory, size) for size in self.records}
        self._topics = 0

    def warm_up(self) -> None:
        """Bring every broker to the speed it keeps: the JVM compiles, the page cache fills."""
        for shape in WARM_UP_SHAPES[:1] if self.setup.is_quick else WARM_UP_SHAPES:
            for broker in self.brokers:
                self.progress.begin(f"warming {broker.name}: {shape.name}")
                topic, _ = self.produce_to(broker, shape)
                self.consume_from(broker, topic, shape)
                broker.delete_topic(topic)
                self.progress.done()

    def measure(self, shape: Shape) -> BenchResult:
        produced: BenchResult = {name: {"rate": [], "cpu": []} for name in (*self.names, BARE_LOOP)}
        consumed: BenchResult = {name: {"rate": [], "cpu": []} for name in self.names}
        topics: dict[str, str] = {}
        self.setup.renew_memory()
        for number in range(self.setup.rounds):
            for broker in alternate(self.brokers, number):
                self.progress.begin(f"produce to {broker.name}: {shape.name}")
                if broker.name in topics:
                    broker.delete_topic(topics[broker.name])
                topics[broker.name], figures = self.produce_to(broker, shape)
                _note(produced[broker.name], figures)
                self.progress.done()
            self.progress.begin(f"{BARE_LOOP}: {shape.name}")
            _note(produced[BARE_LOOP], self.bare_loop(shape))
            self.progress.done()
        for number in range(self.setup.rounds * READS_PER_ROUND):
            for broker in alternate(self.brokers, number):
                self.progress.begin(f"consume from {broker.name}: {shape.name}")
                _note(consumed[broker.name], self.consume_from(broker, topics[broker.name], shape))
                self.progress.done()
        for broker in self.brokers:
            broker.delete_topic(topics[broker.name])
        return {"row": shape.name, "produce": produced, "consume": consumed}

    @property
    def names(self) -> list[str]:
        return [broker.name for broker in self.brokers]

    def produce_to(self, broker: Broker, shape: Shape) -> tuple[str, tuple[float, float]]:
        self._topics += 1
        topic = f"bench{self._topics}"
        broker.create_topic(topic, shape.partitions)
        figures = self._timed(shape, broker, partial(self._produce, broker.port, topic, shape))
        return topic, figures

    def consume_from(self, broker: Broker, topic: str, shape: Shape) -> tuple[float, float]:
        count = self.records[shape.record_bytes]
        with locked_in_memory(broker.directory.glob(f"**/{topic}-*/*")):
            run = partial(consume, broker.bootstrap, topic, shape.partitions, count)
            return self._timed(shape, broker, run)

    def bare_loop(self, shape: Shape) -> tuple[float, float]:
        """The same requests to the bare loop, in a fresh process."""
        place = self.setup.directory / "floor"
        with running(lambda directory: BareLoop(directory, shape.partitions), directory=place) as (loop,):
            return self._timed(shape, loop, partial(self._produce, loop.port, "floor", shape))

    def _produce(self, port: int, topic: str, shape: Shape) -> float:
        count = self.records[shape.record_bytes]
        return produce(port, topic, shape, count, self.payloads[shape.record_bytes])

    def _timed(self, shape: Shape, broker: Broker, run: Callable[[], float]) -> tuple[float, float]:
        """MB/s of record values, and CPU seconds per GB.

        Without the sync, runs of either broker lay up to 70 % apart in CPU. What the one before left to be
        written back is the likely reason, not a proven one.
        """
        os.sync()
        with held(other for other in self.brokers if other is not broker):
            before = broker.cpu_seconds()
            records_per_second = run()
            used = broker.cpu_seconds() - before
        sent_bytes = self.records[shape.record_bytes] * shape.record_bytes
        return records_per_second * shape.record_bytes / MB, used / (sent_bytes / GB)


def _note(kept: BenchResult, figures: tuple[float, float]) -> None:
    kept["rate"].append(figures[0])
    kept["cpu"].append(figures[1])


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    shapes = QUICK_SHAPES if setup.is_quick else SHAPES
    return {"rows": measure_shapes(setup, brokers, shapes), "rounds": setup.rounds}


def measure_shapes(setup: RunSetup, brokers: tuple[Broker, ...], shapes: list[Shape]) -> list[BenchResult]:
    """A row for each shape, on brokers that are warmed first."""
    warm_ups = 1 if setup.is_quick else len(WARM_UP_SHAPES)
    runs_per_round = len(brokers) * (1 + READS_PER_ROUND) + 1
    steps = warm_ups * len(brokers) + len(shapes) * setup.rounds * runs_per_round
    with ProgressLine(TITLE, steps) as progress:
        rows = Rows(setup, brokers, progress)
        rows.warm_up()
        return [rows.measure(shape) for shape in shapes]


# The tables


class Line:
    """One direction of one row: medians, and ratios of ours to Kafka's and to the bare loop."""

    def __init__(self, row: BenchResult, direction: str) -> None:
        self.name = row["row"]
        self._measured = row[direction]
        self.ratio = self.figures("odradek", "rate").over(self.figures("Kafka", "rate"))
        self.cpu_ratio = self.figures("odradek", "cpu").over(self.figures("Kafka", "cpu"))

    def figures(self, who: str, what: str) -> Figures:
        return Figures(tuple(self._measured[who][what]))

    def over_bare_loop(self) -> Figures:
        return self.figures("odradek", "cpu").over(self.figures(BARE_LOOP, "cpu"))

    def cells(self) -> list[str]:
        rates = [f"{self.figures(who, 'rate').median:,.0f}" for who in ("odradek", "Kafka")]
        cpus = [f"{self.figures(who, 'cpu').median:.2f}" for who in ("odradek", "Kafka")]
        cpu_ratio = f"{self.cpu_ratio.median:.2f} ± {self.cpu_ratio.spread:.2f}"
        return [self.name, *rates, f"{self.ratio.median:.2f} ± {self.ratio.spread:.2f}", *cpus, cpu_ratio]

    def floor_cells(self) -> list[str]:
        return [f"{self.figures(BARE_LOOP, 'cpu').median:.2f}", f"{self.over_bare_loop().median:.2f}"]


COLUMNS = ["records, batches", "odradek MB/s", "Kafka MB/s", "ratio", "odradek s/GB", "Kafka s/GB", "ratio"]


def markdown(outcome: BenchResult) -> str:
    produced = [Line(row, "produce") for row in outcome["rows"]]
    consumed = [Line(row, "consume") for row in outcome["rows"]]
    rates, cpus, floors, reads, read_cpus = (
        [one.ratio.median for one in produced],
        [one.cpu_ratio.median for one in produced],
        [one.over_bare_loop().median for one in produced],
        [one.ratio.median for one in consumed],
        [one.cpu_ratio.median for one in consumed],
    )
    produce_rows = [[*line.cells(), *line.floor_cells()] for line in produced]
    produce_rows.append(_mean_row(rates, cpus, ["", f"{geometric_mean(floors):.2f}"]))
    consume_rows = [line.cells() for line in consumed]
    consume_rows.append(_mean_row(reads, read_cpus, []))
    return "\n".join(
        [
            f"Produce, ProducerPerformance, acks 1; medians of {_rounds_text(outcome)}:\n",
            markdown_table([*COLUMNS, "bare loop s/GB", "odradek / bare loop"], produce_rows),
            "\nConsume, confluent-kafka with `assign`:\n",
            markdown_table(COLUMNS, consume_rows),
            "",
            *_verdicts(produced, consumed),
        ]
    )


def _rounds_text(outcome: BenchResult) -> str:
    """How many rounds the rows have, and which of them have more than the rest."""
    names: dict[int, list[str]] = {}
    for row in outcome["rows"]:
        names.setdefault(len(row["produce"][BARE_LOOP]["cpu"]), []).append(row["row"])
    fewest = min(names)
    more = "".join(f", of {count}: {'; '.join(names[count])}" for count in sorted(names) if count > fewest)
    return f"{fewest} rounds{more}"


def _mean_row(rates: list[float], cpus: list[float], rest: list[str]) -> list[str]:
    mean, cpu_mean = f"{geometric_mean(rates):.2f}", f"{geometric_mean(cpus):.2f}"
    return ["geometric mean", "", "", mean, "", "", cpu_mean, *rest]


def _verdicts(produced: list[Line], consumed: list[Line]) -> list[str]:
    slower = [one for one in (*produced, *consumed) if one.ratio.median + one.ratio.spread < 1]
    mean = geometric_mean(one.ratio.median for one in produced)
    lines = [
        verdict(
            "throughput not below Kafka's in any row beyond the spread",
            not slower,
            f"below in {len(slower)} of {len(produced) + len(consumed)} rows",
        ),
        verdict(f"geometric mean of produce ≥ {MEAN_GOAL}", mean >= MEAN_GOAL, f"{mean:.2f}"),
    ]
    for direction, rows in (("produce", produced), ("consume", consumed)):
        worst = max(one.cpu_ratio.median for one in rows)
        goal = f"CPU per GB ≤ {CPU_GOAL} of Kafka's in every {direction} row"
        lines.append(verdict(goal, worst <= CPU_GOAL, f"worst {worst:.2f}"))
    worst = max(one.over_bare_loop().median for one in produced)
    goal = f"CPU per GB ≤ {FLOOR_GOAL} of the bare loop's"
    return [*lines, verdict(goal, worst <= FLOOR_GOAL, f"worst {worst:.2f}")]


def plot(outcome: BenchResult, plots: Path) -> None:
    names = [row["row"] for row in outcome["rows"]]
    for direction in DIRECTIONS:
        lines = [Line(row, direction) for row in outcome["rows"]]
        rates, cpus = [one.ratio for one in lines], [one.cpu_ratio for one in lines]
        panels = [
            _panel("throughput\nodradek / Kafka", rates, Goal(1, "as Kafka")),
            _panel("broker CPU per GB\nodradek / Kafka", cpus, Goal(CPU_GOAL, "goal: half of Kafka's")),
        ]
        if direction == "produce":
            floors = [one.over_bare_loop() for one in lines]
            goal = Goal(FLOOR_GOAL, f"aim: {FLOOR_GOAL} of the bare loop")
            panels.append(_panel("broker CPU per GB\nodradek / bare loop", floors, goal))
        title = f"{direction}: odradek beside Apache Kafka 4.3.1, medians"
        ratio_panels(plots / f"broker-{direction}.png", title, names, panels)


def _panel(title: str, ratios: list[Figures], goal: Goal) -> Ratios:
    return Ratios(title, [one.median for one in ratios], [one.spread for one in ratios], goal)


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
