"""How much a decoder may build out of one frame."""

from __future__ import annotations

from typing import NamedTuple


class DecodeLimits(NamedTuple):
    """Bounds for one message; the frame's own length already bounds strings, bytes and records.

    max_elements: array elements in the whole message, nested ones included.
    max_unknown_tags: tagged fields that we skip because we do not know them.
    """

    max_elements: int
    max_unknown_tags: int


MAX_INLINE_RECORDS = 16 * 1024
"""Records that are bytes, and not more than these, are copied into the frame that is written around them."""
DEFAULT_LIMITS = DecodeLimits(max_elements=1_000_000, max_unknown_tags=1_000)
