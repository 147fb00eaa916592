"""Minutes of mutated bytes in CI, each decoder in turn; `make fuzz` does an hour, guided by coverage."""

from __future__ import annotations

import os
import time
import tracemalloc
from random import Random
from types import ModuleType

import pytest

from fuzz import protocol_target, records_target
from fuzz.mutations import mutate

SECONDS = float(os.environ.get("ODRADEK_FUZZ_SECONDS", "25"))
MUTATIONS_PER_SEED = 10


@pytest.mark.fuzz
@pytest.mark.parametrize("target", [protocol_target, records_target], ids=["protocol", "records"])
def test_no_bytes_break_a_decoder(target: ModuleType) -> None:
    random = Random(os.environ.get("ODRADEK_FUZZ_SEED", "odradek"))
    deadline = time.monotonic() + SECONDS
    seeds = 0
    tracemalloc.start()
    try:
        while time.monotonic() < deadline:
            choice = seeds % target.CHOICES
            seed = target.seed(choice, random)
            target.check(choice, seed)
            for _ in range(MUTATIONS_PER_SEED):
                target.check(choice, mutate(seed, random))
            seeds += 1
    finally:
        tracemalloc.stop()
    assert seeds >= target.CHOICES, f"only {seeds} of {target.CHOICES} decoders were reached in {SECONDS} s"
