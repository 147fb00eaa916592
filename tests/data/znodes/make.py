"""Regenerates znodes.json beside this file: payloads that ZooKeeper-mode Kafka 3.9.2 wrote in a short life.

    .venv/bin/python tests/data/znodes/make.py [PORT]

Needs Java and `bench/peers/setup`. Two brokers of Kafka create, configure, move and delete topics; the
payloads are picked out of ZooKeeper's transaction log, so nodes that lived for a millisecond are there too.
The few that no tool of 3.9.2 writes any more come from Kafka's encoders (Encoders.java).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient, NewTopic

HERE = Path(__file__).parent
PEERS = HERE.parents[2] / "bench" / "peers"
os.environ["KAFKA_VERSION"] = "3.9.2"

# A transaction holds a node as two jute fields: path (length, bytes), then payload (length, bytes).
_PATH = re.compile(rb"\0\0([\0-\1].)(/[\x21-\x7e]+)", re.DOTALL)


def main(port: int) -> None:
    data = Path(tempfile.mkdtemp(prefix="znodes-"))
    os.environ["ZOOKEEPER"] = f"localhost:{port}"
    with ExitStack() as started:
        run("start-zookeeper", data / "zookeeper", port)
        started.callback(run, "stop", data / "zookeeper")
        start_broker(data, 1, port + 1)
        started.callback(run, "stop", data / "broker-1")
        start_broker(data, 2, port + 2, *SECOND_BROKER, f"listeners={second_listeners(port)}")
        started.callback(run, "stop", data / "broker-2")
        live_a_little(f"localhost:{port + 1}")
    keep(from_transaction_log(data / "zookeeper") | from_encoders())
    shutil.rmtree(data)


def keep(samples: set[tuple[str, str]]) -> None:
    """Write the samples, each payload once: forty partitions in the same state would add nothing."""
    path_of = {payload: path for path, payload in sorted(samples, reverse=True)}
    kept = sorted((path, payload) for payload, path in path_of.items())
    lines = ",\n".join(json.dumps(sample) for sample in kept)
    (HERE / "znodes.json").write_text(f"[\n{lines}\n]\n")


SECOND_BROKER = (
    "broker.rack=rack-b",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
)


def second_listeners(port: int) -> str:
    return f"PLAINTEXT://localhost:{port + 2},CLIENT://127.0.0.1:{port + 3}"


def run(script: str, *arguments: object) -> None:
    command = [PEERS / script, *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def start_broker(data: Path, broker_id: int, port: int, *settings: str) -> None:
    os.environ["NODE_ID"] = str(broker_id)
    os.environ["BROKERS"] = str(broker_id)
    run("start", data / f"broker-{broker_id}", port, "controlled.shutdown.enable=false", *settings)


def live_a_little(servers: str) -> None:
    """Make Kafka write each kind of node at least once."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    topics = [
        a_topic("orders", [[1, 2], [2, 1], [1, 2]]),
        a_topic("many", [[1]] * 12),
        a_topic("forty", [[1]] * 40),
        a_topic("doomed", [[1]]),
        a_topic("moved", [[1], [2]]),
        a_topic("configured", [[1]], **SIX_SETTINGS),
    ]
    admin.create_topics(topics)
    move(servers)
    admin.delete_topics(["doomed"])
    admin.close()
    for arguments in SETTINGS:
        run("run-class", "kafka.admin.ConfigCommand", "--bootstrap-server", servers, "--alter", *arguments)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce("orders", b"one")
    producer.flush()
    time.sleep(1)


def a_topic(name: str, replicas: list[list[int]], **configs: str) -> NewTopic:
    """Replicas are given, since Kafka places none while only some brokers have a rack."""
    assignment = dict(enumerate(replicas))
    return NewTopic(name, replica_assignments=assignment, topic_configs=configs)


SIX_SETTINGS = {
    "retention.ms": "1000",
    "segment.bytes": "1048576",
    "max.message.bytes": "2000",
    "cleanup.policy": "compact,delete",
    "min.insync.replicas": "1",
    "flush.ms": "500",
}
SETTINGS = (
    ("--entity-type", "topics", "--entity-name", "orders", "--add-config", "retention.ms=86400000"),
    ("--entity-type", "topics", "--entity-name", "orders", "--delete-config", "retention.ms"),
    ("--entity-type", "brokers", "--entity-name", "1", "--add-config", "log.cleaner.threads=2"),
    ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=604800000"),
    ("--entity-type", "users", "--entity-name", "anna", "--add-config",
     "SCRAM-SHA-256=[iterations=4096,password=secret],SCRAM-SHA-512=[password=secret]"),
    ("--entity-type", "users", "--entity-name", "ü /*", "--add-config", "consumer_byte_rate=1024"),
    ("--entity-type", "users", "--entity-default", "--add-config", "request_percentage=50.5"),
    ("--entity-type", "clients", "--entity-name", "app", "--add-config", "producer_byte_rate=10000000"),
    ("--entity-type", "clients", "--entity-default", "--add-config", "producer_byte_rate=12345678"),
    ("--entity-type", "users", "--entity-name", "anna", "--entity-type", "clients", "--entity-name", "app",
     "--add-config", "producer_byte_rate=1,consumer_byte_rate=2"),
    ("--entity-type", "ips", "--entity-name", "127.0.0.1", "--add-config", "connection_creation_rate=100"),
)  # fmt: skip


def move(servers: str) -> None:
    """Reassign partition 0 of `moved`, which writes adding and removing replicas for a moment."""
    plan = {"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [2]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        run("run-class", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server",
            servers, "--execute", "--reassignment-json-file", file.name)  # fmt: skip
    time.sleep(2)


def from_transaction_log(zookeeper: Path) -> set[tuple[str, str]]:
    samples = set()
    for log in (zookeeper / "data" / "version-2").glob("log.*"):
        content = log.read_bytes()
        for match in _PATH.finditer(content):
            (length,) = struct.unpack(">H", match[1])
            path, at = match[2][:length], match.start(2) + length
            (payload_length,) = struct.unpack_from(">i", content, at)
            payload = content[at + 4 : at + 4 + payload_length]
            if payload_length > 0 and payload[:1] in b'{"0123456789' and path != b"/zookeeper/config":
                samples.add((path.decode(), payload.decode()))
    return samples


def from_encoders() -> set[tuple[str, str]]:
    home = Path(os.environ.get("PEERS_CACHE", Path.home() / ".cache" / "peers")) / "kafka-3.9.2"
    command = ["java", "-cp", f"{home}/libs/*", str(HERE / "Encoders.java")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    pairs = (line.partition("\t") for line in lines)
    return {(path, payload) for path, _, payload in pairs}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 19621)
