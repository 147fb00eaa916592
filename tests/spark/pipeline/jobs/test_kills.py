"""The ready jobs while their driver and their broker, ours or Apache Kafka's, are killed with -9.

Both are killed in the middle of micro-batches. File sinks and, for readers of what is committed, topics have
every row once; dead letters are exactly the bad records.
Each starts two JVMs and takes about a minute: run by `make long`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet
import pytest

from faults.cluster.brokers import Brokers, kafka_brokers
from odradek import Admin, Consumer, Producer
from odradek.client.admin.topics import NewTopic
from odradek.common.ids import TopicPartition
from odradek.spark.pipeline.driver.checkpoint.leftovers import committed_files
from odradek.testing import Cluster
from spark.pipeline.conftest import EXAMPLES
from spark.pipeline.terminal import Terminal, a_terminal, batches, ends, has_read, until

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 1, 30, tzinfo=UTC)
LIMIT = 60
Rows = Sequence[tuple[bytes | None, bytes | None]]
"""Key and value of records, which go to two partitions by key, else in turn."""


class Broker(Protocol):
    """One broker, ours or Apache Kafka's, that can be killed with -9 and started again."""

    bootstrap: str

    def kill(self) -> None: ...
    def start(self) -> None: ...


class KafkaBroker:
    """One broker of Apache Kafka."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self.bootstrap = brokers.bootstrap

    def kill(self) -> None:
        self._brokers.kill(1)

    def start(self) -> None:
        self._brokers.start(1)


class Job:
    """One ready job, in a directory of its own, beside a broker that can be killed."""

    def __init__(self, directory: Path, file: str, cluster: Broker, terminal: Terminal) -> None:
        self.directory, self.file, self.cluster, self.terminal = directory, file, cluster, terminal
        self.name = file.partition(".")[0]
        self.bootstrap = cluster.bootstrap

    def limit(self, before: str, added: str) -> None:
        """Make micro-batches small, so that there are some to be killed in."""
        path = self.directory / self.file
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, added))

    def write(self, topic: str, rows: Rows) -> None:
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for number, (key, value) in enumerate(rows):
                place = {"partition": number % 2} if key is None else {"key": key}
                producer.send(topic, value, **place)  # type: ignore[arg-type]

    def checkpoints(self) -> list[Path]:
        root = self.directory / f"{self.name}.checkpoint"
        return [one.parent for one in root.glob("*/offsets")]

    def begun(self) -> int:
        return sum(len(batches(one, "offsets")) for one in self.checkpoints())

    def is_in_batch(self) -> bool:
        """Whether a micro-batch after the first one is begun and not done."""
        return any(
            len(batches(one, "commits")) > 1 and batches(one, "offsets")[-1] > batches(one, "commits")[-1]
            for one in self.checkpoints()
        )

    def start(self) -> Any:
        return self.terminal.start("run", self.file, "--master", "local[2]", "-o", "lines")

    def kill_driver_in_batch(self) -> None:
        run = self.start()
        until(self.is_in_batch)
        self.terminal.kill_driver(self.name, run)

    def start_and_kill_broker(self) -> Any:
        """Kill the broker when the run has begun micro-batches of its own, and start it again."""
        before = self.begun()
        run = self.start()
        until(lambda: self.begun() > before + 1)
        self.cluster.kill()
        time.sleep(1)
        self.cluster.start()
        return run

    def until_read(self, *topics: str) -> None:
        expected = ends(self.bootstrap, *topics)
        assert expected
        for checkpoint in self.checkpoints():
            until(lambda checkpoint=checkpoint: has_read(checkpoint, expected))  # type: ignore[misc]

    def stop(self, run: Any) -> None:
        code, out, errors = self.terminal.run("stop", self.name)
        assert (code, out) == (0, f"{self.name} has ended.\n"), errors
        out, errors = run.communicate()
        assert run.returncode == 0, errors

    def survive(self, topic: str, rows: Rows) -> None:
        """Read a topic to its end, while driver and broker are killed."""
        half = len(rows) // 2
        self.write(topic, rows[:half])
        self.kill_driver_in_batch()
        self.write(topic, rows[half:])
        run = self.start_and_kill_broker()
        self.until_read(topic)
        self.stop(run)

    def table(self, path: str) -> list[dict[str, Any]]:
        return list(pyarrow.parquet.read_table(self.directory / path).to_pylist())


@pytest.fixture(params=["odradek", "kafka"])
def cluster(request, tmp_path):
    if request.param == "odradek":
        with Cluster({"group.initial.rebalance.delay.ms": 0}, process=True) as running:
            yield running
        return
    alone = {
        "group_initial_rebalance_delay_ms": "0",
        "transaction_state_log_replication_factor": "1",
        "transaction_state_log_min_isr": "1",
    }
    brokers = kafka_brokers(tmp_path / "kafka", 1, **alone)
    try:
        brokers.start_all()
        yield KafkaBroker(brokers)
    finally:
        brokers.end()


@pytest.fixture
def job(request, cluster, tmp_path):
    """The job that the test's name begins with."""
    name = request.node.name.removeprefix("test_").partition("_")[0]
    directory = tmp_path / "pipelines"
    shutil.copytree(EXAMPLES, directory)
    (file,) = [path.name for path in directory.iterdir() if path.stem == name and path.is_file()]
    with a_terminal(directory, BROKERS=cluster.bootstrap) as terminal:
        yield Job(directory, file, cluster, terminal)


def topics(bootstrap: str, *names: str, partitions: int = 2) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name in names])


def records(bootstrap: str, topic: str) -> list[Any]:
    """All records of a topic that are committed."""
    expected = ends(bootstrap, topic)
    found: list[Any] = []
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        for number in range(2):
            place = TopicPartition(topic, number)
            if str(place) in expected:
                consumer.assign_range(place, 0, expected[str(place)])
                while consumer.position(place) < expected[str(place)]:
                    found += consumer.poll_table(0.5).to_pylist()
    return found


def parquet_rows(file: str) -> int:
    return int(pyarrow.parquet.read_metadata(file).num_rows)


def as_json(rows: Iterable[dict[str, Any]]) -> list[tuple[None, bytes]]:
    return [(None, json.dumps(row).encode()) for row in rows]


def at(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {"order_id": n, "customer": f"c{n % 7}", "amount": n / 4, "at": at(n * 200)} for n in range(count)
    ]


def test_archive_has_every_row_once_and_the_bad_records_as_dead_letters(job):
    topics(job.bootstrap, "orders", "orders-dead")
    job.limit("max_offsets_per_trigger: 500000", f"max_offsets_per_trigger: {LIMIT}")
    bad = [(None, b"bad %d" % number) for number in range(8)]
    rows = as_json(orders(1000))
    job.survive("orders", [*rows[:100], *bad[:4], *rows[100:900], *bad[4:], *rows[900:]])

    archived = job.table("output/orders")
    assert sorted(row["order_id"] for row in archived) == list(range(1000))
    dead = records(job.bootstrap, "orders-dead")
    assert sorted(record["value"] for record in dead) == sorted(value for _, value in bad)


def test_latest_has_every_key_once(job):
    topics(job.bootstrap, "customers")
    job.limit("bad_records: drop", f"bad_records: drop\n    max_offsets_per_trigger: {LIMIT}")
    changes = [
        (f"c{number % 50}".encode(), json.dumps({"name": f"n{number}", "city": f"v{number}"}).encode())
        for number in range(950)
    ]
    deletes = [(f"c{number}".encode(), None) for number in range(0, 50, 5)]
    job.survive("customers", changes + deletes)

    rows = job.table("output/customers/current")
    expected = {(f"c{n % 50}", f"v{n}") for n in range(900, 950) if n % 50 % 5}
    assert sorted((row["customer"], row["city"]) for row in rows) == sorted(expected)


def test_sessions_has_every_session_once(job):
    topics(job.bootstrap, "clicks")
    job.limit('    "clicks",', f'    "clicks", max_offsets_per_trigger={LIMIT},')
    # Every ten minutes one of five users begins a session of four clicks.
    clicks = [
        {"user": f"u{n % 5}", "page": "/", "at": at(n * 600 + 60 * click)}
        for n in range(200)
        for click in range(4)
    ]
    half = len(clicks) // 2
    job.write("clicks", as_json(clicks[:half]))
    job.kill_driver_in_batch()
    job.write("clicks", as_json(clicks[half:]))
    run = job.start_and_kill_broker()
    job.until_read("clicks")
    job.write("clicks", as_json([{"user": "last", "page": "/", "at": at(90 * 86400)}] * 2))
    expected = sorted((f"u{n % 5}", 4, at(n * 600).removesuffix("Z")) for n in range(200))
    written = job.directory / "output/sessions"
    # Files of a micro-batch that is not committed are there as well, and are no tables yet.
    until(lambda: sum(parquet_rows(one) for one in committed_files(written)) >= len(expected))
    job.stop(run)

    rows = job.table("output/sessions")
    assert sorted((row["user"], row["clicks"], row["first"].isoformat()) for row in rows) == expected


def test_deduplicate_has_every_order_once(job):
    topics(job.bootstrap, "orders", "orders-unique")
    job.limit('            "orders",\n', f'            "orders", max_offsets_per_trigger={LIMIT},\n')
    rows = as_json({**row, "at": at(row["order_id"])} for row in orders(800))
    job.survive("orders", [row for n, row in enumerate(rows) for _ in range(2 if n % 5 == 0 else 1)])

    unique = [json.loads(record["value"]) for record in records(job.bootstrap, "orders-unique")]
    assert sorted(row["order_id"] for row in unique) == list(range(800))


def test_enrich_has_every_paid_order_once(job):
    topics(job.bootstrap, "orders", "payments", "paid-orders")
    job.limit("format: json", f"format: json\n    max_offsets_per_trigger: {LIMIT}")
    paid = [{**row, "at": at(row["order_id"])} for row in orders(800)]
    payments = [
        {"order_id": n, "method": ("card", "cash")[n % 4 // 2], "paid_at": at(n + 300)} for n in range(800)
    ]
    for part in (slice(0, 400), slice(400, 800)):
        job.write("orders", as_json(paid[part]))
        job.write("payments", as_json(payments[part]))
        if part.start == 0:
            job.kill_driver_in_batch()
    run = job.start_and_kill_broker()
    job.until_read("orders", "payments")
    job.stop(run)

    joined = [json.loads(record["value"]) for record in records(job.bootstrap, "paid-orders")]
    assert sorted((row["order_id"], row["method"]) for row in joined) == [
        (row["order_id"], row["method"]) for row in payments
    ]


def test_backfill_has_every_row_once(job):
    topics(job.bootstrap, "products")
    job.limit("stream: true", "stream: true\n    max_files_per_trigger: 1")
    source = job.directory / "sample/products"
    shutil.rmtree(source)
    source.mkdir()

    def write_files(numbers: range) -> None:
        for number in numbers:
            rows = [{"product_id": number * 10 + n, "name": f"p{n}", "price": 1.5} for n in range(10)]
            hidden = source / f".{number}"  # a file appears as a whole
            hidden.write_text("\n".join(map(json.dumps, rows)))
            hidden.rename(source / f"{number}.json")

    def written() -> list[int]:
        return [json.loads(record["value"])["product_id"] for record in records(job.bootstrap, "products")]

    write_files(range(15))
    job.kill_driver_in_batch()
    write_files(range(15, 30))
    run = job.start_and_kill_broker()
    until(lambda: len(written()) >= 300)
    job.stop(run)
    assert sorted(written()) == list(range(300))


def test_mirror_has_every_record_once(job):
    with Cluster(process=True) as there:
        for one in (job.bootstrap, there.bootstrap):
            topics(one, "orders")
        job.terminal.environment |= {"FROM": job.bootstrap, "TO": there.bootstrap}
        job.limit("pattern:", f"max_offsets_per_trigger: {LIMIT}\n    pattern:")
        rows = [(None, b"value %d" % number) for number in range(1000)]
        job.survive("orders", rows)
        copied = records(there.bootstrap, "orders")
        assert sorted((record["value"], record["partition"]) for record in copied) == sorted(
            (value, number % 500 % 2) for number, (_, value) in enumerate(rows)
        )
