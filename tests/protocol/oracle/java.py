"""Kafka's own message classes as an oracle: the vectors kept in tests/data/protocol, and how to make them.

`make_vectors.py` writes them through Vectors.java, whose head describes the two kinds of lines. Versions that
Kafka 4.3.1 still has come from there, the ones it dropped from 3.9.2.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from odradek.protocol import schema

ROOT = Path(__file__).parents[3]
DATA_DIR = ROOT / "tests" / "data" / "protocol"
NEWEST, OLDER = KAFKA_VERSIONS = ("4.3.1", "3.9.2")


@dataclass(frozen=True, slots=True)
class Vector:
    """One message as Java encoded it, and the content that Java says it has."""

    version: int
    encoded: bytes
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Description:
    """What one Kafka version knows of a message: its versions, headers, and the default of every field."""

    lowest: int
    highest: int
    api_key: int
    is_unstable: bool
    header_versions: list[int]
    fields: dict[str, Any]


def vectors_path(kafka_version: str) -> Path:
    """Where the vectors of one Kafka version are kept."""
    return DATA_DIR / f"java-{kafka_version}.jsonl.gz"


def read_lines(kafka_version: str) -> bytes:
    """The kept vectors of one Kafka version, as Vectors.java wrote them."""
    return gzip.decompress(vectors_path(kafka_version).read_bytes())


@cache
def _lines(kafka_version: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_lines(kafka_version).splitlines()]


@cache
def vectors() -> dict[str, list[Vector]]:
    """All vectors by message name."""
    found: dict[str, list[Vector]] = {}
    for kafka_version in KAFKA_VERSIONS:
        for line in _lines(kafka_version):
            if "version" in line:
                found.setdefault(line["message"], []).append(_vector(line))
    return found


def _vector(line: dict[str, Any]) -> Vector:
    return Vector(line["version"], bytes.fromhex(line["bytes"]), line["content"])


def descriptions_of(message: str) -> list[Description]:
    """What the Kafka versions that have this message say of it, newest first."""
    return [described[message] for described in map(_descriptions, KAFKA_VERSIONS) if message in described]


def kafka_with(message: str, version: int) -> str:
    """The newest Kafka version that still has this message version."""
    return next(
        kafka
        for kafka in KAFKA_VERSIONS
        if (found := _descriptions(kafka).get(message)) and found.lowest <= version <= found.highest
    )


@cache
def _descriptions(kafka_version: str) -> dict[str, Description]:
    return {
        line["message"]: Description(
            lowest=line["lowest"],
            highest=line["highest"],
            api_key=line["apiKey"],
            is_unstable=line.get("unstable", False),
            header_versions=line.get("headerVersions", []),
            fields=line["fields"],
        )
        for line in _lines(kafka_version)
        if "version" not in line
    }


def classpath(kafka_version: str) -> str:
    """The jars of one Kafka version, fetched if they are not there yet."""
    setup = [ROOT / "bench" / "peers" / "setup", kafka_version]
    home = subprocess.run(setup, check=True, capture_output=True, text=True).stdout.strip()
    return os.path.join(home, "libs", "*")


def run_vectors(kafka_version: str, wanted: list[tuple[str, int, int]]) -> bytes:
    """What Vectors.java prints for these messages, each with its lowest and highest version wanted."""
    text = "".join(f"{name} {lowest} {highest}\n" for name, lowest, highest in wanted)
    command = _command(kafka_version)
    return subprocess.run(command, check=True, input=text.encode(), stdout=subprocess.PIPE).stdout


def _command(kafka_version: str) -> list[str]:
    program = Path(__file__).parent / "Vectors.java"
    return ["java", "-cp", classpath(kafka_version), str(program)]


class Echo:
    """A running Vectors.java that reads messages we encoded and answers with what it found in them."""

    def __init__(self, kafka_version: str) -> None:
        command = [*_command(kafka_version), "echo"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, message: str, version: int, encoded: bytes) -> Vector:
        """The same message as Java writes it, and its content as Java prints it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{message} {version} {encoded.hex()}\n".encode())
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "refused" not in answer, f"{message} {version} {encoded.hex()}: {answer['refused']}"
        return _vector(answer)

    def close(self) -> None:
        """Let the program end."""
        self._process.communicate()


def make_lines() -> dict[str, bytes]:
    """The vectors of every message version in our schemas, by Kafka version."""
    specs = schema.load_all()
    newest = run_vectors(NEWEST, [(name, *spec.versions) for name, spec in specs.items()])
    described = [json.loads(line) for line in newest.splitlines()]
    lowest = {line["message"]: line["lowest"] for line in described if "lowest" in line}
    # Where nothing was dropped the range is empty, and only the description is written.
    dropped = [
        (name, spec.versions.low, lowest.get(name, spec.versions.high + 1) - 1)
        for name, spec in specs.items()
    ]
    return {NEWEST: newest, OLDER: run_vectors(OLDER, dropped)}
