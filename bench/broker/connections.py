"""What 10,000 idle connections cost, ours beside Apache Kafka's: memory added, and a record's round trip.

Every connection asks for ApiVersions once, as a client does, and then sends nothing more. They come from
several source addresses, so that ports do not run short. Fewer are opened where the process may not have so
many files, and the table says how many there were. In every round each broker's round trips are measured
without them, with them, and without them again, while the other broker stands still; the ratio of a round is
that of the middle to the mean of both sides, so that a machine that grows slower or quicker does not count.

    python bench/broker/connections.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.latency import TOPIC as LATENCY_TOPIC
from broker.latency import RoundTrips, percentiles
from broker.run_setup import Part, RunSetup, main
from brokers import Broker, held
from charts import Goal, grouped_bars
from harness import Figures, alternate
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest
from processes import allow_many_files
from progress import ProgressLine
from results import MB, BenchResult, markdown_table, verdict
from wire import ask_on

TITLE = "connections"
CONNECTIONS, QUICK_CONNECTIONS = 10_000, 500
FILES_TO_SPARE = 200
SOURCE_ADDRESSES = 4
SENDS = 5_000
QUICK_SENDS = 500
ADDED_MB_GOAL = 100
HOLDS_RATIO = 1.25
"""A round trip holds when its median grows by no more than that."""


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    wanted = QUICK_CONNECTIONS if setup.is_quick else CONNECTIONS
    count = min(wanted, allow_many_files() - FILES_TO_SPARE)
    sends = QUICK_SENDS if setup.is_quick else SENDS
    rounds: dict[str, list[BenchResult]] = {broker.name: [] for broker in brokers}
    with ProgressLine(TITLE, len(brokers) * setup.rounds) as progress:
        for number in range(setup.rounds):
            for broker in alternate(brokers, number):
                with held(other for other in brokers if other is not broker):
                    rounds[broker.name].append(_measure(broker, count, sends, progress))
                progress.done()
    return {"connections": count, **rounds}


def _measure(broker: Broker, count: int, sends: int, progress: ProgressLine) -> BenchResult:
    broker.create_topic(LATENCY_TOPIC)
    client = RoundTrips(broker)
    progress.begin(f"{broker.name}: round trips without the connections")
    client.block(sends)
    before = percentiles(client.block(sends))
    resident_before = broker.resident_bytes()
    with ExitStack() as opened:
        progress.begin(f"{broker.name}: opening {count} connections")
        for number in range(count):
            opened.enter_context(_idle_connection(broker.port, number))
        progress.begin(f"{broker.name}: round trips beside {count} connections")
        added = broker.resident_bytes() - resident_before
        client.block(sends)
        beside = percentiles(client.block(sends))
    progress.begin(f"{broker.name}: round trips when they are gone")
    client.block(sends)
    after = percentiles(client.block(sends))
    client.close()
    broker.delete_topic(LATENCY_TOPIC)
    without = {percent: (before[percent] + after[percent]) / 2 for percent in before}
    return {"added_mb": added / MB, "milliseconds_without": without, "milliseconds_beside": beside}


def _idle_connection(port: int, number: int) -> socket.socket:
    source = f"127.0.0.{1 + number % SOURCE_ADDRESSES}"
    connection = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
    request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    ask_on(connection, ApiKey.API_VERSIONS, 3, request)
    return connection


def _milliseconds(rounds: list[BenchResult], when: str, percent: str) -> Figures:
    return Figures(tuple(one[f"milliseconds_{when}"][percent] for one in rounds))


def _ratio(rounds: list[BenchResult], percent: str) -> Figures:
    return _milliseconds(rounds, "beside", percent).over(_milliseconds(rounds, "without", percent))


def _added_mb(rounds: list[BenchResult]) -> float:
    """Of the round that added most: later ones find memory that the first has left."""
    return max(one["added_mb"] for one in rounds)


def markdown(outcome: BenchResult) -> str:
    rows = []
    for who in ("odradek", "Kafka"):
        cells = []
        for percent in ("50", "99"):
            without, beside = (_milliseconds(outcome[who], when, percent) for when in ("without", "beside"))
            ratio = _ratio(outcome[who], percent)
            cells += [
                f"{without.median:.3f}",
                f"{beside.median:.3f}",
                f"{ratio.median:.2f} ± {ratio.spread:.2f}",
            ]
        rows.append([who, f"{_added_mb(outcome[who]):.1f}", *cells])
    added, held_ratio = _added_mb(outcome["odradek"]), _ratio(outcome["odradek"], "50").median
    columns = ["", "MB added", "p50 ms without", "with them", "ratio", "p99 ms without", "with them", "ratio"]
    return "\n".join(
        [
            f"{outcome['connections']:,} idle connections, and the round trip of a record beside them: "
            f"medians of {len(outcome['odradek'])} rounds:\n",
            markdown_table(columns, rows),
            "",
            verdict(f"add ≤ {ADDED_MB_GOAL} MB", added <= ADDED_MB_GOAL, f"{added:.1f} MB"),
            verdict(
                f"latency holds (p50 within {HOLDS_RATIO})", held_ratio <= HOLDS_RATIO, f"{held_ratio:.2f}"
            ),
        ]
    )


def plot(outcome: BenchResult, plots: Path) -> None:
    grouped_bars(
        plots / "broker-connections.png",
        f"what {outcome['connections']:,} idle connections add to the broker's memory",
        ["memory added"],
        {who: [_added_mb(outcome[who])] for who in ("odradek", "Kafka")},
        label="MB",
        goal=Goal(ADDED_MB_GOAL, f"goal: {ADDED_MB_GOAL} MB"),
    )


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
