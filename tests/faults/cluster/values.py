"""The values of records: unique, of a given size, and damage to them is noticed."""

from __future__ import annotations

FILLER = b"."


def encode_value(name: str, size: int) -> bytes:
    """The bytes to send, filled up to the size."""
    return f"{name} ".encode().ljust(size, FILLER)


def decode_value(content: bytes | None) -> str:
    """The name again; what has a damaged rest comes back as it is, so that no send has it."""
    name, _, rest = (content or b"").partition(b" ")
    if rest.strip(FILLER):
        return repr(content)
    return name.decode("ascii", "replace")
