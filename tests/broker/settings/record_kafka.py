"""Asks Apache Kafka 4.3.1 what it says of its configuration, and keeps the answers in tests/data/configs.

    python tests/broker/config/record_kafka.py DATA_DIR PORT      starts and stops its own broker

`described.json` has DescribeConfigs answers under the name of the moment they were asked in;
`altered.json` has every attempt of ATTEMPTS with the error that Kafka answered. Documentation is kept only as
"there is some": the sentences are Kafka's.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from odradek.protocol import messages
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests/data/configs"
TOPIC, BROKER = 2, 4
BROKER_ID, DEFAULT = "1", ""
SET, DELETE, APPEND, SUBTRACT = range(4)

STATIC = (
    "log.retention.minutes=120",
    "log.roll.hours=24",
    "log.flush.scheduler.interval.ms=5000",
    "compression.type=lz4",
    "ssl.keystore.password=secret",
    "listener.name.plaintext.ssl.truststore.password=secret",
    "some.unknown.key=7",
)
OVERRIDES = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"}

# resource type, resource name, then (key, operation, value) ...
ATTEMPTS: list[tuple[int, str, list[tuple[str, int, str | None]]]] = [
    (TOPIC, "bare", [("retention.ms", SET, "2000")]),
    (TOPIC, "bare", [("retention.ms", DELETE, None)]),
    (TOPIC, "bare", [("retention.ms", DELETE, "ignored")]),
    (TOPIC, "bare", [("cleanup.policy", APPEND, "compact")]),
    (TOPIC, "bare", [("cleanup.policy", APPEND, "compact,delete")]),
    (TOPIC, "bare", [("cleanup.policy", SUBTRACT, "delete")]),
    (TOPIC, "bare", [("cleanup.policy", SUBTRACT, "never there")]),
    (TOPIC, "bare", [("cleanup.policy", SET, "shred")]),
    (TOPIC, "bare", [("cleanup.policy", SET, "compact, delete")]),
    (TOPIC, "bare", [("cleanup.policy", SET, "")]),
    (TOPIC, "bare", [("cleanup.policy", SET, "delete,delete")]),
    (TOPIC, "bare", [("retention.ms", APPEND, "1")]),
    (TOPIC, "bare", [("retention.ms", SUBTRACT, "1")]),
    (TOPIC, "bare", [("retention.ms", SET, "-2")]),
    (TOPIC, "bare", [("retention.ms", SET, "soon")]),
    (TOPIC, "bare", [("retention.ms", SET, " 3000 ")]),
    (TOPIC, "bare", [("retention.ms", SET, "")]),
    (TOPIC, "bare", [("retention.ms", SET, None)]),
    (TOPIC, "bare", [("retention.ms", APPEND, None)]),
    (TOPIC, "bare", [("retention.ms", 9, "1")]),
    (TOPIC, "bare", [("retention.ms", SET, "9223372036854775808")]),
    (TOPIC, "bare", [("segment.bytes", SET, "1000")]),
    (TOPIC, "bare", [("segment.bytes", SET, "3000000000")]),
    (TOPIC, "bare", [("preallocate", SET, "maybe")]),
    (TOPIC, "bare", [("preallocate", SET, "TRUE")]),
    (TOPIC, "bare", [("min.cleanable.dirty.ratio", SET, "1.5")]),
    (TOPIC, "bare", [("min.cleanable.dirty.ratio", SET, "half")]),
    (TOPIC, "bare", [("compression.type", SET, "brotli")]),
    (TOPIC, "bare", [("compression.gzip.level", SET, "0")]),
    (TOPIC, "bare", [("message.timestamp.type", SET, "createtime")]),
    (TOPIC, "bare", [("no.such.key", SET, "1")]),
    (TOPIC, "bare", [("no.such.key", DELETE, None)]),
    (TOPIC, "bare", [("no.such.key", APPEND, "1")]),
    (TOPIC, "bare", [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")]),
    (TOPIC, "bare", [("leader.replication.throttled.replicas", SET, "0:1,1:1")]),
    (TOPIC, "bare", [("leader.replication.throttled.replicas", APPEND, "2:1")]),
    (TOPIC, "bare", [("leader.replication.throttled.replicas", SUBTRACT, "1:1")]),
    (TOPIC, "bare", [("leader.replication.throttled.replicas", SET, "*")]),
    (TOPIC, "bare", [("leader.replication.throttled.replicas", SET, "nonsense")]),
    (TOPIC, "bare", [("flush.ms", SET, "1"), ("flush.ms", DELETE, None)]),
    (TOPIC, "bare", [("remote.storage.enable", SET, "false")]),
    (TOPIC, "bare", [("remote.storage.enable", SET, "true")]),
    (TOPIC, "absent", [("retention.ms", SET, "2000")]),
    (TOPIC, DEFAULT, [("retention.ms", SET, "2000")]),
    (TOPIC, "../x", [("retention.ms", SET, "2000")]),
    (BROKER, BROKER_ID, [("message.max.bytes", SET, "2000000")]),
    (BROKER, BROKER_ID, [("message.max.bytes", SET, "many")]),
    (BROKER, BROKER_ID, [("message.max.bytes", SET, "-1")]),
    (BROKER, BROKER_ID, [("message.max.bytes", APPEND, "1")]),
    (BROKER, BROKER_ID, [("message.max.bytes", SUBTRACT, "1")]),
    (BROKER, BROKER_ID, [("log.cleanup.policy", APPEND, "compact")]),
    (BROKER, BROKER_ID, [("log.cleanup.policy", SUBTRACT, "compact")]),
    (BROKER, BROKER_ID, [("log.cleanup.policy", DELETE, None)]),
    (BROKER, BROKER_ID, [("log.dirs", SET, "/elsewhere")]),
    (BROKER, BROKER_ID, [("log.retention.hours", SET, "1")]),
    (BROKER, BROKER_ID, [("log.retention.hours", DELETE, None)]),
    (BROKER, BROKER_ID, [("ssl.keystore.location", SET, "/elsewhere")]),
    (BROKER, BROKER_ID, [("no.such.key", SET, "1")]),
    (BROKER, BROKER_ID, [("no.such.key", DELETE, None)]),
    (BROKER, BROKER_ID, [("message.max.bytes", SET, None)]),
    (BROKER, BROKER_ID, [("message.max.bytes", 9, "1")]),
    (BROKER, BROKER_ID, [("num.io.threads", SET, "100")]),
    (BROKER, BROKER_ID, [("num.io.threads", SET, "3")]),
    (BROKER, BROKER_ID, [("num.io.threads", SET, "16")]),
    (BROKER, BROKER_ID, [("leader.replication.throttled.rate", SET, "1000")]),
    (BROKER, BROKER_ID, [("leader.replication.throttled.rate", SET, "-1")]),
    (BROKER, BROKER_ID, [("leader.replication.throttled.rate", DELETE, None)]),
    (BROKER, BROKER_ID, [("leader.replication.throttled.rate", SET, "2000")]),
    (BROKER, BROKER_ID, [("log.retention.ms", SET, "0")]),
    (BROKER, BROKER_ID, [("principal.builder.class", SET, "no.such.Class")]),
    (BROKER, "2", [("message.max.bytes", SET, "2000000")]),
    (BROKER, "one", [("message.max.bytes", SET, "2000000")]),
    (BROKER, DEFAULT, [("log.retention.ms", SET, "7200000")]),
    (BROKER, DEFAULT, [("log.cleaner.threads", SET, "2")]),
    (BROKER, DEFAULT, [("listeners", SET, "PLAINTEXT://localhost:1")]),
    (BROKER, DEFAULT, [("sasl.enabled.mechanisms", APPEND, "PLAIN")]),
    (BROKER, DEFAULT, [("log.dirs", SET, "/elsewhere")]),
    (BROKER, DEFAULT, [("message.max.bytes", SET, "3000000"), ("no.such.key", SET, "1")]),
    (BROKER, DEFAULT, [("no.such.key", DELETE, None)]),
    (BROKER, DEFAULT, [("message.max.bytes", SET, "3000000")]),
    (9, "x", [("message.max.bytes", SET, "3000000")]),
]


class Client:
    """One connection to Kafka; one request at a time."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("localhost", port), timeout=30)
        self._stream = self._connection.makefile("rb")

    def ask(self, api_key: ApiKey, version: int, request: Message) -> Any:
        parts = encode_request(api_key, version, 1, "recorder", request)
        self._connection.sendall(b"".join(bytes(part) for part in parts))
        (size,) = struct.unpack(">i", self._stream.read(4))
        return decode_response(api_key, version, self._stream.read(size))[1]

    def create_topic(self, name: str, configs: dict[str, str]) -> None:
        struct_class = messages.CreateTopicsRequest.Topics
        topic = struct_class(name=name, num_partitions=1, replication_factor=1)
        topic.configs = [struct_class.Configs(name=key, value=value) for key, value in configs.items()]
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, messages.CreateTopicsRequest(topics=[topic]))
        if answer.topics[0].error_code != 0:
            raise RuntimeError(answer)

    def describe(self, resource_type: int, resource_name: str) -> list[dict[str, Any]]:
        resource = messages.DescribeConfigsRequest.Resources(
            resource_type=resource_type, resource_name=resource_name, configuration_keys=None
        )
        request = messages.DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        result = self.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results[0]
        return sorted((row(entry) for entry in result.configs), key=lambda entry: entry["name"])

    def alter(
        self, resource_type: int, resource_name: str, operations: list[tuple[str, int, str | None]]
    ) -> tuple[int, str | None]:
        struct_class = messages.IncrementalAlterConfigsRequest.Resources
        configs = [
            struct_class.Configs(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ]
        resource = struct_class(resource_type=resource_type, resource_name=resource_name, configs=configs)
        request = messages.IncrementalAlterConfigsRequest(resources=[resource])
        answer = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0]
        return answer.error_code, answer.error_message


def row(entry: Any) -> dict[str, Any]:
    """One entry of DescribeConfigs as JSON."""
    return {
        "name": entry.name,
        "value": entry.value,
        "is_read_only": entry.read_only,
        "is_sensitive": entry.is_sensitive,
        "source": entry.config_source,
        "type": entry.config_type,
        "synonyms": [[one.name, one.value, one.source] for one in entry.synonyms],
        "has_documentation": bool(entry.documentation),
    }


def overrides(client: Client, resource_type: int, resource_name: str) -> dict[str, str | None]:
    """What was set for just this resource: its own dynamic values."""
    own = {TOPIC: 1, BROKER: 2 if resource_name else 3}.get(resource_type)
    found = {}
    for entry in client.describe(resource_type, resource_name):
        found.update({name: value for name, value, source in entry["synonyms"] if source == own})
    return found


def attempt_all(client: Client) -> list[dict[str, Any]]:
    """Every attempt in turn, on what the ones before have left."""
    results = []
    for resource_type, resource_name, operations in ATTEMPTS:
        before = overrides(client, resource_type, resource_name)
        error_code, error_message = client.alter(resource_type, resource_name, operations)
        time.sleep(0.3 if error_code == 0 else 0)  # the metadata log reaches the broker a moment later
        results.append(
            {
                "resource_type": resource_type,
                "resource_name": resource_name,
                "operations": operations,
                "before": before,
                "error_code": error_code,
                "error_message": error_message,
                "after": overrides(client, resource_type, resource_name),
            }
        )
    return results


def describe_all(client: Client) -> dict[str, list[dict[str, Any]]]:
    """Every resource that can be described, at one moment."""
    return {
        "broker": client.describe(BROKER, BROKER_ID),
        "default broker": client.describe(BROKER, DEFAULT),
        "topic bare": client.describe(TOPIC, "bare"),
        "topic overridden": client.describe(TOPIC, "overridden"),
    }


def one_row_a_line(value: Any) -> str:
    """JSON whose rows can be distinguished in a diff."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
    members = (f"{json.dumps(name)}: {one_row_a_line(member)}" for name, member in value.items())
    return "{\n" + ",\n".join(members) + "\n}"


def keep(name: str, value: Any, data_dir: str, port: int) -> None:
    """Write JSON without what differs between two recordings."""
    text = one_row_a_line(value)
    text = text.replace(data_dir, "DATA").replace(str(port + 1000), "9093").replace(str(port), "9092")
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / name).write_text(text + "\n")


def main(data_dir: str, port: int) -> None:
    peers = ROOT / "bench/peers"
    subprocess.run([peers / "start", data_dir, str(port), *STATIC], check=True)
    try:
        client = Client(port)
        client.create_topic("bare", {})
        client.create_topic("overridden", OVERRIDES)
        time.sleep(2)
        at_start = describe_all(client)
        altered = attempt_all(client)
        keep("described.json", {"at start": at_start, "altered": describe_all(client)}, data_dir, port)
        keep("altered.json", altered, data_dir, port)
    finally:
        subprocess.run([peers / "stop", data_dir], check=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
