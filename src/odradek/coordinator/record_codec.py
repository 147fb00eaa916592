"""Encodes and decodes the records of internal topics.

key     type     int16   the record type, e.g. 1 for a committed offset
        body             the key's message, version 0
value   version  int16
        body             the value's message in that version; a null value deletes the key
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from odradek.coordinator.result import CoordinatorRecord
from odradek.protocol import messages, schema
from odradek.protocol.errors import ProtocolError
from odradek.protocol.structs import Message

KEY_VERSION = 0
_INT16_BYTES = 2


class DecodedRecord(NamedTuple):
    """A record as messages; without a value the key is deleted."""

    key: Message
    value: Message | None


class RecordCodec:
    """The records of one internal topic, as its schema file lists them."""

    def __init__(self, topic_schema: str) -> None:
        self._keys = _messages_by_type(topic_schema, "coordinator-key")
        self._values = _messages_by_type(topic_schema, "coordinator-value")
        self._types = {message.__name__: number for number, message in self._keys.items()}

    def encode(self, key: Message, value: Message | None, version: int = 0) -> CoordinatorRecord:
        """The record that sets the key to this value, or deletes it."""
        key_type = self._types[type(key).__name__]
        encoded_key = _int16(key_type) + key.encode(KEY_VERSION)
        return CoordinatorRecord(
            encoded_key, None if value is None else _int16(version) + value.encode(version)
        )

    def decode(self, key: bytes, value: bytes | None) -> DecodedRecord | None:
        """The messages of a record; None for an unknown type, which a later Kafka may write."""
        key_type = _read_int16(key)
        if key_type not in self._keys:
            return None
        decoded_key, _ = self._keys[key_type].decode(key, KEY_VERSION, _INT16_BYTES)
        if value is None:
            return DecodedRecord(decoded_key, None)
        decoded_value, _ = self._values[key_type].decode(value, _read_int16(value), _INT16_BYTES)
        return DecodedRecord(decoded_key, decoded_value)


@cache
def _messages_by_type(topic_schema: str, kind: str) -> Mapping[int, type[Message]]:
    return {
        spec.key: getattr(messages, spec.name)
        for spec in schema.load_file(topic_schema).values()
        if spec.kind == kind and spec.key is not None
    }


def _int16(number: int) -> bytes:
    return number.to_bytes(_INT16_BYTES, "big", signed=True)


def _read_int16(content: bytes) -> int:
    if len(content) < _INT16_BYTES:
        raise ProtocolError(f"{len(content)} bytes instead of a version")
    return int.from_bytes(content[:_INT16_BYTES], "big", signed=True)
