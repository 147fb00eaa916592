"""Regenerates the segments beside this file: starts Apache Kafka, fills five topics, keeps their directories.

    .venv/bin/python tests/data/segments/make.py [PORT]

Needs Java and `bench/peers/setup`. Each directory gets the partition's files as Kafka left them after a clean
stop, `expected.json` (what confluent-kafka's consumer read) and `dump.txt` (what DumpLogSegments printed).
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
PEERS = HERE.parents[2] / "bench" / "peers"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BROKER_SETTINGS = (
    "transaction.state.log.num.partitions=1",
    "offsets.topic.num.partitions=1",
    "log.cleaner.backoff.ms=200",
    "log.initial.task.delay.ms=100",
    "transaction.partition.verification.enable=false",
)
TOPICS: dict[str, dict[str, str]] = {
    "librdkafka": {},
    "java": {},
    "transactions": {},
    "log-append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "500",
        "delete.retention.ms": "60000",
    },
}
BASE_TIME_MS = 1_700_000_000_000


def main(port: int) -> None:
    data = Path(tempfile.mkdtemp(prefix="segments-"))
    subprocess.run(
        [PEERS / "start", data, str(port), *BROKER_SETTINGS], check=True, stdout=subprocess.DEVNULL
    )
    servers = f"localhost:{port}"
    try:
        create_topics(servers)
        fill_librdkafka(servers)
        fill_java(servers)
        fill_transactions(servers)
        fill_log_append_time(servers)
        fill_compacted(servers, data / "logs" / "compacted-0")
        expected = {topic: consume(servers, topic) for topic in TOPICS}
    finally:
        subprocess.run([PEERS / "stop", data], check=True)
    for topic, records in expected.items():
        keep(data / "logs" / f"{topic}-0", HERE / topic, records)
    shutil.rmtree(data)


def create_topics(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result()


def producer(servers: str, **settings: Any) -> Producer:
    return Producer(
        {"bootstrap.servers": servers, "linger.ms": 200}
        | {k.replace("_", "."): v for k, v in settings.items()}
    )


def fill_librdkafka(servers: str) -> None:
    """One batch per codec, with every shape a record can have."""
    for codec in CODECS:
        sender = producer(servers, compression_type=codec, enable_idempotence=codec in ("none", "lz4"))
        for i in range(12):
            sender.produce(
                "librdkafka",
                key=None if i % 4 == 0 else f"{codec}-{i}".encode(),
                value=None if i % 5 == 1 else f"value {i} ".encode() * (i * 7),
                headers=[("trace", bytes([i])), ("empty", b""), ("null", None)] if i % 3 == 0 else None,
                timestamp=BASE_TIME_MS + i * 1000 - (i % 2) * 5000,
            )
        sender.flush()


def fill_java(servers: str) -> None:
    """Java's console producer, which frames snappy and lz4 in its own ways."""
    lines = [f"h:{i},flag:NULL\tkey-{i}\t{'payload ' * i}" for i in range(8)] + ["h:x\tNULL\tNULL"]
    settings = ["--bootstrap-server", servers]
    for setting in ("parse.key=true", "parse.headers=true", "null.marker=NULL"):
        settings += ["--property", setting]
    for codec in CODECS:
        subprocess.run(
            [
                PEERS / "run-class",
                "ConsoleProducer",
                "--topic",
                "java",
                *settings,
                "--compression-codec",
                codec,
            ],
            input="\n".join(lines).encode(),
            check=True,
            stdout=subprocess.DEVNULL,
        )


def fill_transactions(servers: str) -> None:
    """Commit, abort, commit, with a plain producer's records between."""
    sender = producer(servers, transactional_id="segments", compression_type="zstd")
    sender.init_transactions()
    plain = producer(servers)
    for number, ends in enumerate(
        (sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)
    ):
        sender.begin_transaction()
        for i in range(3):
            sender.produce("transactions", key=b"t%d" % number, value=b"in transaction %d" % i)
        sender.flush()
        plain.produce("transactions", value=b"outside of transaction %d" % number)
        plain.flush()
        ends()


def fill_log_append_time(servers: str) -> None:
    for codec in ("none", "lz4"):
        sender = producer(servers, compression_type=codec)
        for i in range(5):
            sender.produce("log-append-time", key=b"k%d" % i, value=b"v%d" % i, timestamp=BASE_TIME_MS + i)
        sender.flush()


def fill_compacted(servers: str, directory: Path) -> None:
    """Keys written again and again, tombstones, transactions; then the cleaner gets its time."""
    # The last batch of a producer stays, empty, when all its keys have newer values.
    overtaken = producer(servers, enable_idempotence=True)
    send(overtaken, [(b"key-0", b"to be overtaken")])
    sender = producer(servers, compression_type="gzip")
    for number in range(6):
        send(sender, [(b"key-%d" % (i * number % 12), b"%d.%d" % (number, i)) for i in range(10)])
        time.sleep(0.7)  # longer than segment.ms, so that the next batch opens a new segment
    send(sender, [(b"gone-1", None), (b"stays", b"beside a tombstone"), (b"gone-2", None)])
    transactional = producer(servers, transactional_id="compacted")
    transactional.init_transactions()
    for ends in (transactional.abort_transaction, transactional.commit_transaction):
        transactional.begin_transaction()
        send(transactional, [(b"key-1", b"in a transaction")])
        ends()
    time.sleep(0.7)
    send(sender, [(b"last", b"the active segment")])
    wait_for_cleaner(directory)


def send(sender: Producer, entries: list[tuple[bytes, bytes | None]]) -> None:
    for key, value in entries:
        sender.produce("compacted", key=key, value=value)
    sender.flush()


def wait_for_cleaner(directory: Path) -> None:
    """The cleaner is done when the sizes of the segments have not changed for a while."""
    last: list[tuple[str, int]] = []
    for _ in range(60):
        time.sleep(2)
        now = sorted((path.name, path.stat().st_size) for path in directory.glob("*.log"))
        if now == last:
            return
        last = now


def consume(servers: str, topic: str) -> list[dict[str, Any]]:
    """Every record, also those of aborted transactions, as confluent-kafka sees them."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "segments",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = []
    while True:
        message = consumer.poll(30)
        if message is None:
            raise TimeoutError(topic)
        if message.error():
            break
        timestamp_type, timestamp_ms = message.timestamp()
        records.append(
            {
                "offset": message.offset(),
                "timestamp_ms": timestamp_ms,
                "is_log_append_time": timestamp_type == TIMESTAMP_LOG_APPEND_TIME,
                "key": encoded(message.key()),
                "value": encoded(message.value()),
                "headers": [[key, encoded(value)] for key, value in message.headers() or []],
            }
        )
    consumer.close()
    return records


def encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def keep(source: Path, target: Path, records: list[dict[str, Any]]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.deleted"))
    lines = ",\n".join(json.dumps(record) for record in records)
    (target / "expected.json").write_text(f"[\n{lines}\n]\n")
    logs = sorted(target.glob("*.log"))
    command = [PEERS / "run-class", "DumpLogSegments", "--deep-iteration", "--files"]
    dump = subprocess.run(
        [*command, ",".join(str(log) for log in logs)], check=True, capture_output=True, text=True
    )
    (target / "dump.txt").write_text(dump.stdout.replace(f"{target}/", ""))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 19192)
