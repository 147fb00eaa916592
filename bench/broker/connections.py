"""What 10,000 idle connections cost, ours beside Apache Kafka's: memory added, and a record's round trip.

Every connection asks for ApiVersions once, as a client does, and then says nothing more. They come from
several source addresses, so that ports do not run short. Fewer are opened where the process may not have so
many files, and the table says how many there were.

    python bench/broker/connections.py [--quick]
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.latency import TOPIC as LATENCY_TOPIC
from broker.latency import RoundTrips, percentiles
from broker.setting import Part, Setting, main
from brokers import Broker
from charts import Goal, grouped_bars
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest
from processes import allow_many_files
from results import MB, Outcome, markdown_table, verdict
from telling import Teller
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


def measure(setting: Setting, brokers: tuple[Broker, ...]) -> Outcome:
    wanted = QUICK_CONNECTIONS if setting.is_quick else CONNECTIONS
    count = min(wanted, allow_many_files() - FILES_TO_SPARE)
    sends = QUICK_SENDS if setting.is_quick else SENDS
    outcome: Outcome = {"connections": count}
    with Teller(TITLE, len(brokers)) as tell:
        for broker in brokers:
            outcome[broker.name] = _measure(broker, count, sends, tell)
            tell.done()
    return outcome


def _measure(broker: Broker, count: int, sends: int, tell: Teller) -> Outcome:
    broker.create_topic(LATENCY_TOPIC)
    client = RoundTrips(broker)
    tell.begin(f"{broker.name}: round trips without the connections")
    client.block(sends)
    before = percentiles(client.block(sends))
    resident_before = broker.resident_bytes()
    with ExitStack() as opened:
        tell.begin(f"{broker.name}: opening {count} connections")
        for number in range(count):
            opened.enter_context(_idle_connection(broker.port, number))
        tell.begin(f"{broker.name}: round trips beside {count} connections")
        added = broker.resident_bytes() - resident_before
        after = percentiles(client.block(sends))
    client.close()
    broker.delete_topic(LATENCY_TOPIC)
    return {"added_mb": added / MB, "milliseconds_before": before, "milliseconds_after": after}


def _idle_connection(port: int, number: int) -> socket.socket:
    source = f"127.0.0.{1 + number % SOURCE_ADDRESSES}"
    connection = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
    request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    ask_on(connection, ApiKey.API_VERSIONS, 3, request)
    return connection


def markdown(outcome: Outcome) -> str:
    ours = outcome["odradek"]
    rows = [
        [
            who,
            f"{outcome[who]['added_mb']:.1f}",
            *(
                f"{outcome[who][f'milliseconds_{when}'][percent]:.3f}"
                for percent in ("50", "99")
                for when in ("before", "after")
            ),
        ]
        for who in ("odradek", "Kafka")
    ]
    added = ours["added_mb"]
    held = ours["milliseconds_after"]["50"] / ours["milliseconds_before"]["50"]
    columns = ["", "MB added", "p50 ms before", "with them", "p99 ms before", "with them"]
    return "\n".join(
        [
            f"{outcome['connections']:,} idle connections, and the round trip of a record beside them:\n",
            markdown_table(columns, rows),
            "",
            verdict(f"add ≤ {ADDED_MB_GOAL} MB", added <= ADDED_MB_GOAL, f"{added:.1f} MB"),
            verdict(f"latency holds (p50 within {HOLDS_RATIO})", held <= HOLDS_RATIO, f"{held:.2f}"),
        ]
    )


def plot(outcome: Outcome, plots: Path) -> None:
    grouped_bars(
        plots / "broker-connections.png",
        f"what {outcome['connections']:,} idle connections add to the broker's memory",
        ["memory added"],
        {who: [outcome[who]["added_mb"]] for who in ("odradek", "Kafka")},
        label="MB",
        goal=Goal(ADDED_MB_GOAL, f"goal: {ADDED_MB_GOAL} MB"),
    )


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
