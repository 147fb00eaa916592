"""The ready jobs of examples/pipelines: right results, in two runs that go on where the first one ended."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from kafka_peer import running_kafka
from odradek import Admin, Producer
from spark.pipeline.conftest import EXAMPLES, Runner
from spark.pipeline.terminal import until


def lines(name: str) -> list[bytes]:
    return (EXAMPLES / "sample" / name).read_bytes().splitlines()


TOPICS = {
    "orders",
    "orders-dead",
    "payments",
    "paid-orders",
    "clicks",
    "customers",
    "products",
    "orders-unique",
}


@pytest.fixture(params=["odradek", pytest.param("kafka", marks=pytest.mark.long)])
def fresh(request, monkeypatch):
    """A broker without the topics of the jobs: odradek, or Apache Kafka."""
    kind = request.param
    bootstrap = (
        request.getfixturevalue("bootstrap") if kind == "odradek" else request.getfixturevalue("kafka")[0]
    )
    monkeypatch.setenv("BROKERS", bootstrap)
    with Admin(bootstrap_servers=bootstrap) as admin:
        there = TOPICS & {one.name for one in admin.list_topics()}
        if there:
            admin.delete_topics(sorted(there))
        until(lambda: not TOPICS & {one.name for one in admin.list_topics()})
    return bootstrap


def write(bootstrap: str, topic: str, values: list[bytes], partitions: int = 2) -> None:
    librdkafka = Librdkafka(bootstrap)
    if topic not in librdkafka.admin.list_topics().topics:
        librdkafka.create_topic(topic, partitions=partitions)
    librdkafka.produce(topic, [Record(value) for value in values])


def abort(bootstrap: str, topic: str) -> None:
    """Write a record that was never committed."""
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"aborts {topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()


def check_archive(runner: Runner, bootstrap: str) -> None:
    orders = lines("orders.jsonl")
    for part in (orders[:25], orders[25:]):
        write(bootstrap, "orders", part)
        runner.run("archive.yaml")

    rows = runner.parquet("output/orders")
    assert sorted(row.order_id for row in rows) == list(range(40))
    assert {str(row.date) for row in rows} == {"2026-01-30", "2026-01-31"}
    assert (runner.directory / "output/orders/date=2026-01-30").is_dir()
    dead = runner.records(bootstrap, "orders-dead")
    assert sorted(bytes(row.value) for row in dead) == sorted(orders[-2:])
    reasons = {header.key: bytes(header.value) for row in dead for header in row.headers}
    assert set(reasons) == {
        f"odradek.{name}" for name in ("topic", "partition", "offset", "timestamp", "error")
    }


@pytest.mark.parametrize("fresh", ["odradek", "kafka"], indirect=True)
def test_archive(runner, fresh):
    check_archive(runner, fresh)
    progress = [event for event in runner.events if event["event"] == "progress"]
    assert sum(event["rows_in"] for event in progress if event["query"] == "archive") == 42
    assert sum(event["rows_out"] for event in progress if event["query"] == "archive") == 40
    assert sum(event["rows_out"] for event in progress if event["query"] == "dead_letters_orders") == 2


def test_backfill(runner, fresh):
    Librdkafka(fresh).create_topic("products", partitions=2)
    late = runner.directory / "sample/products/part-2.json"
    hidden = late.rename(runner.directory / "later.json")
    runner.run("backfill.yaml")
    hidden.rename(late)
    runner.run("backfill.yaml")

    rows = runner.records(fresh, "products")
    assert sorted(json.loads(bytes(row.value))["product_id"] for row in rows) == [
        *range(10, 15),
        *range(20, 25),
    ]
    assert all(bytes(row.key) == str(json.loads(bytes(row.value))["product_id"]).encode() for row in rows)


def test_latest_value_per_key(runner, fresh):
    changes = [line.split(b":", 1) for line in lines("customers.jsonl")]
    Librdkafka(fresh).create_topic("customers", partitions=2)
    for part in (changes[:3], changes[3:]):
        Librdkafka(fresh).produce("customers", [Record(value or None, key) for key, value in part])
        runner.run("latest.yaml")

    # Without a name this is a bad record, and no deletion.
    Librdkafka(fresh).produce("customers", [Record(b'{"name": null, "city": "Graz"}', b"c3")])
    runner.run("latest.yaml")
    rows = runner.parquet("output/customers/current")
    assert {(row.customer, row.city) for row in rows} == {("c1", "Vienna"), ("c3", "Linz")}


def test_sessions(runner, fresh):
    write(fresh, "clicks", lines("clicks.jsonl"))
    runner.run("sessions.py")
    late = {"user": "ann", "page": "/", "at": "2026-01-30T09:20:00Z"}
    write(fresh, "clicks", [json.dumps(late).encode()])  # hours behind the watermark
    runner.run("sessions.py")

    rows = {(row.user, row.first, row.clicks) for row in runner.parquet("output/sessions")}
    at = datetime(2026, 1, 30)
    assert rows == {
        ("ann", at.replace(hour=9), 2),
        ("ann", at.replace(hour=9, minute=45), 1),
        ("ann", at.replace(hour=11), 1),
        ("bob", at.replace(hour=9, minute=5), 2),
    }
    assert sum(event["late_rows"] for event in runner.events if event["event"] == "progress") == 1


def test_enrich(runner, fresh):
    Librdkafka(fresh).create_topic("paid-orders")
    orders, payments = lines("orders.jsonl"), lines("payments.jsonl")
    write(fresh, "orders", orders)
    write(fresh, "payments", payments[:12])
    runner.run("enrich.yaml")
    write(fresh, "payments", payments[12:])
    runner.run("enrich.yaml")

    paid = [json.loads(bytes(row.value)) for row in runner.records(fresh, "paid-orders")]
    # After the first run the watermark is 18:10 of the last day: of the other payments only one is not late.
    assert sorted(one["order_id"] for one in paid) == [*range(0, 24, 2), 34]
    assert all(one["method"] == ("card", "cash")[one["order_id"] % 4 // 2] for one in paid)


def test_deduplicate(runner, fresh):
    Librdkafka(fresh).create_topic("orders-unique")
    orders = lines("orders.jsonl")[:40]
    write(fresh, "orders", orders + orders[35:])
    runner.run("deduplicate.py")
    write(fresh, "orders", orders[38:])
    runner.run("deduplicate.py")

    rows = [json.loads(bytes(row.value))["order_id"] for row in runner.records(fresh, "orders-unique")]
    assert sorted(rows) == list(range(40))


def test_mirror_from_apache_kafka_and_back(runner, bootstrap, topic, tmp_path, monkeypatch):
    records = [Record(b"%d" % n, b"key", (("n", b"1"),), 1_700_000_000_000 + n) for n in range(20)]
    with running_kafka(tmp_path / "kafka", {"log.retention.ms": "-1"}) as kafka:
        names = (f"{topic}-there", f"{topic}-back")
        for source, target, name in ((kafka, bootstrap, names[0]), (bootstrap, kafka, names[1])):
            for address in (source, target):
                Librdkafka(address).create_topic(name, partitions=2)
            Librdkafka(source).produce(name, records)
            abort(source, name)
            monkeypatch.setenv("FROM", source)
            monkeypatch.setenv("TO", target)
            monkeypatch.setenv("TOPICS", name)
            text = (EXAMPLES / "mirror.yaml").read_text().replace("name: mirror", f"name: {name}")
            runner.write(f"{name}.yaml", text)
            runner.run(f"{name}.yaml")
            copied = {
                (bytes(row.value), bytes(row.key), row.headers[0].key) for row in runner.records(target, name)
            }
            assert copied == {(record.value, b"key", "n") for record in records}
            original = {
                (bytes(row.value), row.partition, row.timestamp) for row in runner.records(source, name)
            }
            copy = {(bytes(row.value), row.partition, row.timestamp) for row in runner.records(target, name)}
            assert copy == original


def test_all_jobs_are_tested():
    tested = {"archive.yaml", "backfill.yaml", "latest.yaml", "sessions.py", "enrich.yaml", "deduplicate.py"}
    files = {path.name for path in Path(EXAMPLES).iterdir() if path.suffix in (".py", ".yaml")}
    assert files == tested | {"mirror.yaml"}
