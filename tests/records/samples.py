"""Records and batches for the tests of this folder."""

from __future__ import annotations

import struct

from hypothesis import settings
from hypothesis import strategies as st

from odradek.records.batch import renew_crc
from odradek.records.builder import build_batch, finish_batch
from odradek.records.compression import Codec
from odradek.records.record import Record

LIMIT = 10_000_000
FEW = settings(max_examples=40)
"""For properties that run once per codec."""

NULLABLE_BYTES = st.none() | st.binary(max_size=40)
HEADERS = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), NULLABLE_BYTES), max_size=3
)
TIMESTAMPS_MS = st.integers(-1, 2**42)


@st.composite
def record_lists(draw: st.DrawFn, *, gaps: bool = False, min_size: int = 1) -> list[Record]:
    """Records at offsets 0, 1, 2 …, or with gaps between."""
    count = draw(st.integers(min_size, 12))
    steps = draw(st.lists(st.integers(1, 1000 if gaps else 1), min_size=count, max_size=count))
    offset, records = -1, []
    for step in steps:
        offset += step
        records.append(
            Record(
                offset,
                draw(TIMESTAMPS_MS),
                draw(NULLABLE_BYTES),
                draw(NULLABLE_BYTES),
                tuple(draw(HEADERS)),
            )
        )
    return records


def some_records(count: int = 3) -> list[Record]:
    """Records with everything: nulls, empties, headers, times that go back."""
    return [
        Record(
            offset,
            1_700_000_000_000 + (offset * 7) % 5,
            None if offset % 3 == 0 else b"key-%d" % offset,
            None if offset % 4 == 1 else b"value " * (offset % 50),
            (("trace", b"\x01"), ("empty", b""), ("null", None)) if offset % 2 else (),
        )
        for offset in range(count)
    ]


def patched(batch: bytes | bytearray, position: int, layout: str, number: int) -> bytearray:
    """The batch with one number changed and its CRC renewed."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, number)
    renew_crc(changed, 0, len(changed))
    return changed


def batch_of(
    encoded: bytes | bytearray, *, count: int = 1, codec: Codec = Codec.NONE, attributes: int = 0
) -> bytearray:
    """A batch around record bytes that need not be right."""
    return finish_batch(
        bytearray(61) + encoded,
        codec=codec,
        level=None,
        attributes=attributes,
        base_offset=0,
        partition_leader_epoch=-1,
        last_offset_delta=count - 1,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )


def a_batch(count: int = 3, codec: Codec = Codec.NONE) -> bytearray:
    """A good batch."""
    return build_batch(some_records(count), codec=codec)
