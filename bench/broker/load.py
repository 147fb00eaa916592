"""The load on a broker: Kafka's own ProducerPerformance, and a confluent-kafka consumer with `assign`."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from brokers import PEERS

STEADY_STATE = re.compile(r"(\d+) steady state records sent, ([\d.]+) records/sec")
PAYLOADS = 2000
RECORDS_PER_CALL = 10_000
CLIENT_SECONDS = 300


@dataclass(frozen=True)
class Shape:
    """What is sent: one row of the comparison."""

    record_bytes: int
    batch_bytes: int
    linger_ms: int
    codec: str
    partitions: int

    @property
    def name(self) -> str:
        batch = f"{self.batch_bytes // 1024} KiB"
        codec = "" if self.codec == "none" else f", {self.codec}"
        partitions = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
        return f"{self.record_bytes} B, {batch}{codec}, {partitions}"


def write_payloads(directory: Path, record_bytes: int) -> Path:
    """A file of records that look like events: lz4 shrinks them about as it does real ones."""
    path = directory / f"payload-{record_bytes}"
    rng = random.Random(record_bytes)
    with path.open("w") as lines:
        for _ in range(PAYLOADS):
            text = ""
            while len(text) < record_bytes:
                text += json.dumps(_event(rng), separators=(",", ":"))
            lines.write(text[:record_bytes] + "\n")
    return path


def _event(rng: random.Random) -> dict[str, object]:
    return {
        "user": f"u{rng.randrange(10**6):06d}",
        "event": rng.choice(("view", "click", "order", "return")),
        "session": rng.randbytes(8).hex(),
        "price": rng.randrange(10**5) / 100,
    }


def produce(
    port: int, topic: str, shape: Shape, records: int, payloads: Path, *, records_per_second: int = -1
) -> float:
    """Send records by ProducerPerformance, as fast as possible by default.

    Returns records per second after its first quarter, when its JVM is warm.
    """
    command = [
        *(str(PEERS / "run-class"), "ProducerPerformance", "--topic", topic),
        *("--throughput", str(records_per_second)),
        *("--num-records", str(records), "--warmup-records", str(records // 4)),
        *("--payload-file", str(payloads), "--bootstrap-server", f"127.0.0.1:{port}"),
        *("--reporting-interval", str(CLIENT_SECONDS * 1000), "--command-property", "acks=1"),
        *(f"batch.size={shape.batch_bytes}", f"linger.ms={shape.linger_ms}"),
        f"compression.type={shape.codec}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False)
    found = STEADY_STATE.search(done.stdout)
    if found is None:
        raise RuntimeError(f"ProducerPerformance failed:\n{done.stdout}\n{done.stderr}")
    return float(found[2])


def consume(bootstrap: str, topic: str, partitions: int, records: int) -> float:
    """Read that many records from the beginning; records per second after the first call that got any.

    The default of fetch.queue.backoff.ms makes librdkafka sleep through most of a fast read.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "broker.address.family": "v4",
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        first = _take(consumer, records)
        count, started = first, time.perf_counter()
        while count < records:
            count += _take(consumer, records - count)
        return (count - first) / (time.perf_counter() - started)
    finally:
        consumer.close()


def _take(consumer: Consumer, wanted: int) -> int:
    """What one call brings; it waits until it has all that it asked for, so the last one asks for less."""
    messages = consumer.consume(min(wanted, RECORDS_PER_CALL), timeout=CLIENT_SECONDS)
    if not messages:
        raise TimeoutError(f"no records within {CLIENT_SECONDS} s")
    for message in (messages[0], messages[-1]):
        if message.error() is not None:
            raise KafkaException(message.error())
    return len(messages)
