"""Decoders of keys and values for `odradek log dump`."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from odradek.records.record import Record

Decoded = tuple[str | None, str | None]
RecordDecoder = Callable[[Record], Decoded]
BytesDecoder = Callable[[bytes], str]

DEFAULT_CLASS = "StringDecoder"
_PACKAGES = ("org.apache.kafka.tools.api.", "kafka.serializer.")


def _replace_as_java_does(error: UnicodeError) -> tuple[str, int]:
    """One replacement character for the bytes of a surrogate, whole or cut; Python gives one for each."""
    assert isinstance(error, UnicodeDecodeError)
    first, second, third = (*error.object[error.start : error.start + 3], 0, 0)[:3]
    if first == 0xED and 0xA0 <= second <= 0xBF:
        return "\ufffd", error.start + (3 if 0x80 <= third <= 0xBF else 2)
    return "\ufffd", error.end


codecs.register_error("odradek.java", _replace_as_java_does)


def to_string(content: bytes) -> str:
    """Decode UTF-8; invalid bytes become U+FFFD as in Java."""
    return content.decode("utf-8", "odradek.java")


def to_integer(content: bytes) -> str:
    """A big-endian integer of 4 or 8 bytes; other lengths give a message."""
    if len(content) not in (4, 8):
        return f"<{len(content)} bytes, not an integer>"
    return str(int.from_bytes(content, "big", signed=True))


BYTES_DECODERS: dict[str, BytesDecoder] = {
    "StringDecoder": to_string,
    "IntegerDecoder": to_integer,
    "LongDecoder": to_integer,
    "HexDecoder": bytes.hex,
}


def bytes_decoder(class_name: str) -> BytesDecoder:
    """The decoder of that Kafka class, with or without its package. KeyError if there is none."""
    for package in _PACKAGES:
        class_name = class_name.removeprefix(package)
    return BYTES_DECODERS[class_name]


def plain_decoder(key: BytesDecoder, value: BytesDecoder) -> RecordDecoder:
    """Decode key and value each by itself; a null stays out."""

    def decode(record: Record) -> Decoded:
        return (
            key(record.key) if record.key is not None else None,
            value(record.value) if record.value is not None else None,
        )

    return decode
