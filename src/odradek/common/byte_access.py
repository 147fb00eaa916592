"""The bytes of a memoryview as compiled code reads and writes them: by pointer, without a call for each.

Where code is interpreted, the view itself serves. byte_access.pxd has the C side; both are used alike:

    raw = raw_bytes(view)
    length = int32_at(raw, 8)

Numbers are big-endian, as everywhere in Kafka. In C nothing is checked behind the pointer, neither the bounds
nor that the view still exists: that is the caller's part.
"""

from __future__ import annotations


def raw_bytes(view: memoryview) -> memoryview:
    """To read."""
    return view


def writable_raw_bytes(view: memoryview) -> memoryview:
    """To read and write."""
    return view


def part_of(view: memoryview, start: int, end: int) -> memoryview:
    """What `view[start:end]` is, for bounds within the view: IndexError for others."""
    if not 0 <= start <= end <= len(view):
        raise IndexError("a part reaches beyond its view")
    return view[start:end]


def copied(raw: memoryview, start: int, end: int) -> bytes:
    """Some of them, as an object of their own."""
    return bytes(raw[start:end])


def int16_at(raw: memoryview, position: int) -> int:
    """A signed number of two bytes."""
    return int.from_bytes(raw[position : position + 2], "big", signed=True)


def int32_at(raw: memoryview, position: int) -> int:
    """A signed number of four bytes."""
    return int.from_bytes(raw[position : position + 4], "big", signed=True)


def uint32_at(raw: memoryview, position: int) -> int:
    """A number of four bytes without sign."""
    return int.from_bytes(raw[position : position + 4], "big")


def int64_at(raw: memoryview, position: int) -> int:
    """A signed number of eight bytes."""
    return int.from_bytes(raw[position : position + 8], "big", signed=True)


def put_int16(raw: memoryview, position: int, number: int) -> None:
    """Write two bytes."""
    raw[position : position + 2] = number.to_bytes(2, "big", signed=True)


def put_uint32(raw: memoryview, position: int, number: int) -> None:
    """Write four bytes of a number without sign."""
    raw[position : position + 4] = number.to_bytes(4, "big")


def put_int32(raw: memoryview, position: int, number: int) -> None:
    """Write four bytes."""
    raw[position : position + 4] = number.to_bytes(4, "big", signed=True)


def put_int64(raw: memoryview, position: int, number: int) -> None:
    """Write eight bytes."""
    raw[position : position + 8] = number.to_bytes(8, "big", signed=True)
