"""Minutes of mutated messages in CI; `make fuzz` does an hour, guided by coverage."""

from __future__ import annotations

import os
import time
import tracemalloc
from random import Random

import pytest

from fuzz import protocol_target
from fuzz.mutations import mutate

SECONDS = float(os.environ.get("ODRADEK_FUZZ_SECONDS", "45"))


@pytest.mark.fuzz
def test_no_bytes_break_a_decoder() -> None:
    random = Random(os.environ.get("ODRADEK_FUZZ_SEED", "odradek"))
    deadline = time.monotonic() + SECONDS
    versions = len(protocol_target.every_version())
    inputs = 0
    tracemalloc.start()
    try:
        while time.monotonic() < deadline:
            chosen = inputs % versions
            seed = protocol_target.seed(chosen, random)
            protocol_target.check(chosen, seed)
            for _ in range(10):
                protocol_target.check(chosen, mutate(seed, random))
            inputs += 1
    finally:
        tracemalloc.stop()
    assert inputs >= versions, f"only {inputs} of {versions} message versions were reached in {SECONDS} s"
