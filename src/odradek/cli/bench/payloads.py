"""Record values: random capital letters, as in Kafka's tool, the same in every run."""

from __future__ import annotations

import random

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LETTERS = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))

MOST = 10_000
MOST_BYTES = 8 * 1024 * 1024
"""More than a batch, so that compression finds no record twice."""


def make_payloads(size: int, count: int) -> list[bytes]:
    """Up to `count` values of `size` bytes; a run that needs more begins again with the first."""
    kept = max(1, min(count, MOST, MOST_BYTES // max(1, size)))
    letters = random.Random(size).randbytes(kept * size).translate(_TO_LETTERS)
    return [letters[place * size : (place + 1) * size] for place in range(kept)]
