"""The examples that read, process and write: exactly once while they are killed again and again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from client.producer.transactions.brokers import make_topic, values
from odradek import Producer

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
RECORDS = 200_000
KILLS = 6
MAX_SECONDS = 240


@pytest.mark.slow
@pytest.mark.parametrize("name", ["read_process_write.py", "read_process_write_async.py"])
def test_output_equals_input_although_the_program_is_killed(
    bootstrap: str, made_topic: str, name: str
) -> None:
    target = make_topic(bootstrap, f"{made_topic}-out")
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(made_topic, b"record %d" % number, key=b"%d" % (number % 7))
    expected = sorted(b"RECORD %d" % number for number in range(RECORDS))
    command = [sys.executable, str(EXAMPLES / name), bootstrap, made_topic, target]
    rng, deadline, kills = random.Random(5), time.monotonic() + MAX_SECONDS, 0
    found: list[bytes] = []
    while len(found) < RECORDS:
        assert time.monotonic() < deadline, f"{len(found)} of {RECORDS} records after {kills} kills"
        with subprocess.Popen(command) as process:
            time.sleep(rng.uniform(0.4, 1.4) if kills < KILLS else 8)
            process.kill()
        kills += 1
        found = values(bootstrap, target)
    assert found == expected
    assert kills > 1
