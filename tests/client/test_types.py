"""What a type checker knows of the clients: keys and values follow from the serializers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json
from typing import Any
from odradek import Admin, AsyncConsumer, AsyncProducer, Consumer, Producer

def to_json(value: dict[str, int]) -> bytes:
    return json.dumps(value).encode()

def from_json(content: bytes) -> dict[str, int]:
    return dict(json.loads(content))

def text(content: bytes) -> str:
    return content.decode()

reveal_type(Producer())
reveal_type(Producer(key_serializer=str.encode))
reveal_type(Producer(value_serializer=to_json))
reveal_type(AsyncProducer(key_serializer=str.encode, value_serializer=to_json))
reveal_type(Consumer(group_id="g"))
reveal_type(Consumer(key_deserializer=text))
reveal_type(AsyncConsumer(key_deserializer=text, value_deserializer=from_json))

def read(consumer: Consumer[str, dict[str, int]]) -> None:
    for record in consumer:
        reveal_type(record.key)
        reveal_type(record.value)
    reveal_type(consumer.poll(1)[0].headers)

producer: Producer[str, bytes] = Producer(key_serializer=str.encode)
reveal_type(producer.send("t", b"v", key="k").result(1).offset)
producer.send("t", "text", key="k")  # wrong
producer.send("t", b"v", key=b"k")  # wrong
other: Producer[str, bytes] = Producer()  # wrong
Producer("localhost:9092")  # wrong
Producer(ackss=1)  # wrong
Producer(linger_ms="5")  # wrong
Producer(acks=1, bootstrap_servers=["localhost:9092"], linger_ms=0.5)
Consumer(auto_offset_reset=True)  # wrong
Admin("localhost:9092")  # wrong
Admin(bootstrap_server="localhost:9092")  # wrong
settings: dict[str, Any] = {}
Consumer(**settings, group_id=None)
"""

REVEALED = [
    "Producer[bytes, bytes]",
    "Producer[str, bytes]",
    "Producer[bytes, dict[str, int]]",
    "AsyncProducer[str, dict[str, int]]",
    "Consumer[bytes, bytes]",
    "Consumer[str, bytes]",
    "AsyncConsumer[str, dict[str, int]]",
    "str | None",
    "dict[str, int] | None",
    "tuple[tuple[str, bytes | None], ...]",
    "int",
]


@pytest.mark.slow
def test_a_type_checker_knows_keys_and_values(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # Without a configuration of ours: as in a user's own project.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--no-error-summary", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    lines = checked.stdout.splitlines()
    assert not checked.stderr

    revealed = [re.sub(r"\b[a-z_]+\.", "", line.split('"')[1]) for line in lines if "Revealed type" in line]
    assert revealed == REVEALED
    refused = {int(line.split(":")[1]) for line in lines if " error: " in line}
    assert refused == {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
