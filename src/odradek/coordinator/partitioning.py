"""Which partition of an internal topic a key belongs to: by Java's hash of the group or transactional id."""

from __future__ import annotations

_INT32 = 1 << 32
_INT32_MIN = -(1 << 31)


def partition_for(key: str, partition_count: int) -> int:
    """The partition whose leader coordinates that group or transactional id."""
    number = java_hash(key)
    # Java's Math.abs leaves the smallest int negative; Kafka uses 0 then.
    return (0 if number == _INT32_MIN else abs(number)) % partition_count


def java_hash(text: str) -> int:
    """String.hashCode: h = 31 h + unit over the UTF-16 units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) % _INT32
    return value - _INT32 if value >= 1 << 31 else value
