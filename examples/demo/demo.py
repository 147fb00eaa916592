"""The demo: a broker, a generator of orders and clicks, one pipeline with live progress, a table and a plot.

    make demo                                    about a minute and a half
    .venv-spark/bin/python examples/demo/demo.py --seconds 60 --plot demo.png

Ctrl-C ends it early; the broker, the topics and the checkpoint are removed in any case.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from odradek import Admin, Producer
from odradek.common.errors import OdradekError
from odradek.spark.pipeline.definition.load import load
from odradek.spark.pipeline.running.preflight import check_machine
from odradek.spark.pipeline.running.supervisor import RunOptions, Supervisor
from odradek.spark.pipeline.running.view import TerminalView, line
from odradek.testing import Cluster

COUNTRIES = ("AT", "CZ", "DE", "PL", "SK")
ORDERS_PER_SECOND, CLICKS_PER_SECOND = 200, 1000
BAD_EVERY = 500


def main() -> int:
    """Run the demo; the exit code is that of the pipeline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=45.0, help="how long the pipeline runs")
    parser.add_argument("--plot", default="demo.png", help="where the plot goes")
    options = parser.parse_args()
    try:
        check_machine()
        return run(options.seconds, options.plot)
    except OdradekError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(seconds: float, plot: str) -> int:
    """The broker and all that runs beside it, until the end."""
    # The broker runs in this process: Ctrl-C at the terminal would end one of its own.
    with tempfile.TemporaryDirectory(prefix="odradek-demo-") as directory, Cluster() as cluster:
        os.environ |= {"BROKERS": cluster.bootstrap, "OUTPUT": directory}
        os.environ["ODRADEK_PIPELINE_STATE"] = f"{directory}/state"
        print(f"A broker runs at {cluster.bootstrap}; Spark starts, which takes about ten seconds.")
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            for name in ("orders", "clicks", "orders-dead"):
                admin.create_topic(name, num_partitions=2)
        is_over = threading.Event()
        generator = threading.Thread(target=generate, args=(cluster.bootstrap, is_over))
        generator.start()
        try:
            code = run_pipeline(seconds)
        finally:
            is_over.set()
            generator.join()
        if code == 0:
            show(Path(directory), plot)
    return code


def generate(bootstrap: str, is_over: threading.Event) -> None:
    """Orders and clicks of now, ten times a second; some orders are broken."""
    chance = random.Random(1)
    number = 0
    with Producer(bootstrap_servers=bootstrap, linger_ms=50, delivery_timeout_ms=35_000) as producer:
        while not is_over.wait(0.1):
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            for _ in range(ORDERS_PER_SECOND // 10):
                number += 1
                order = {"order_id": number, "country": chance.choice(COUNTRIES), "at": at}
                order["amount"] = round(chance.lognormvariate(3, 0.6), 2)
                value = json.dumps(order) if number % BAD_EVERY else "not an order"
                producer.send("orders", value.encode())
            for _ in range(CLICKS_PER_SECOND // 10):
                click = {"country": chance.choice(COUNTRIES), "page": f"/{chance.randrange(50)}", "at": at}
                producer.send("clicks", json.dumps(click).encode())


def run_pipeline(seconds: float) -> int:
    """Run until the time is over or Ctrl-C; the time counts from the first micro-batch."""
    pipeline = load(str(Path(__file__).with_name("sales.yaml")))
    is_running = threading.Event()

    def on_event(event: object, _: object) -> None:
        if isinstance(event, dict) and event["event"] == "running":
            is_running.set()

    supervisor = Supervisor(pipeline, RunOptions(master="local[2]"), on_event)

    def stop_later() -> None:
        is_running.wait()
        time.sleep(seconds)
        supervisor.request_stop()

    threading.Thread(target=stop_later, daemon=True).start()
    with requests_to_stop(supervisor):
        if sys.stdout.isatty():
            with TerminalView(supervisor.summary):
                code = supervisor.run()
        else:
            code = supervisor.run()
            print(line(supervisor.summary, time.monotonic()))
    if supervisor.summary.error:
        print(f"Error: {supervisor.summary.error}", file=sys.stderr)
    return code


@contextmanager
def requests_to_stop(supervisor: Supervisor) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the pipeline while it runs, and this program before and after."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: supervisor.request_stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def show(directory: Path, plot: str) -> None:
    """The result as a table, and as a picture."""
    import matplotlib as mpl
    import pandas as pd

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    tables = [directory / name for name in ("sales", "visits")]
    found = [pd.read_parquet(one) for one in tables if list(one.glob("*.parquet"))]
    if len(found) < len(tables) or any(one.empty for one in found):
        print("No window was closed in this time; run it for longer: --seconds 60")
        return
    sales, visits = found
    by_country = sales.groupby("country")[["orders", "amount"]].sum()
    by_country["clicks"] = visits.groupby("country")["clicks"].sum()
    by_country["orders per 100 clicks"] = (100 * by_country["orders"] / by_country["clicks"]).round(1)
    print(by_country.to_string())
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    sales.pivot_table(index="start", columns="country", values="amount").plot(ax=upper, marker="o")
    upper.set_ylabel("amount in 5 s")
    upper.set_title("sales and clicks by country, windows of 5 seconds")
    visits.pivot_table(index="start", columns="country", values="clicks").plot(
        ax=lower, marker="o", legend=False
    )
    lower.set_ylabel("clicks in 5 s")
    figure.tight_layout()
    figure.savefig(plot)
    print(f"The plot is {plot}.")


if __name__ == "__main__":
    sys.exit(main())
