"""Decodes records of `__consumer_offsets` and `__transaction_state` to the JSON that DumpLogSegments prints.

    key     type     int16   which kind of record, e.g. 1 for a committed offset
            body             the key's message, version 0
    value   version  int16
            body             the value's message in that version; a null value deletes the key

In a group of classic consumers, subscription and assignment are messages in turn: int16 version, body.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from odradek.common.ids import uuid_to_text
from odradek.protocol import messages, schema
from odradek.protocol.errors import ProtocolError
from odradek.protocol.schema import FieldSpec
from odradek.protocol.structs import Message, Struct
from odradek.records.record import Record

DELETED = "<DELETE>"
_INT16_BYTES = 2
_LOWER_CASE_ESCAPE = re.compile(r"((?:^|[^\\])(?:\\\\)*\\u00[01])([a-f])")

Decoded = tuple[str | None, str | None]


class CoordinatorDecoder:
    """Key and value of a coordinator's record as text."""

    def __init__(self, topic_schema: str) -> None:
        self._keys = _messages_by_type(topic_schema, "coordinator-key")
        self._values = _messages_by_type(topic_schema, "coordinator-value")

    def decode(self, record: Record) -> Decoded:
        """Both as JSON; an error message if the record cannot be decoded."""
        if record.key is None:
            return f"Error at offset {record.offset}, skipping. The record has no key.", None
        try:
            return self._decode(record.offset, record.key, record.value)
        except (ProtocolError, ValueError) as error:
            return f"Error at offset {record.offset}, skipping. {error}", None

    def _decode(self, offset: int, key: bytes, value: bytes | None) -> Decoded:
        record_type = _read_int16(key)
        if record_type not in self._keys:
            return f"Unknown record type {record_type} at offset {offset}, skipping.", None
        fields = message_to_json(self._keys[record_type], key, 0)
        shown_key = to_json({"type": str(record_type), "data": fields})
        if value is None:
            return shown_key, DELETED
        version = _read_int16(value)
        fields = message_to_json(self._values[record_type], value, version)
        _open_consumer_protocol(fields)
        return shown_key, to_json({"version": str(version), "data": fields})


def decode_group_record(record: Record) -> Decoded:
    """Key and value of a record of `__consumer_offsets`."""
    return _decoder("consumer-offsets.txt").decode(record)


def decode_transaction_record(record: Record) -> Decoded:
    """Key and value of a record of `__transaction_state`."""
    return _decoder("transaction-state.txt").decode(record)


@cache
def _decoder(topic_schema: str) -> CoordinatorDecoder:
    return CoordinatorDecoder(topic_schema)


@cache
def _messages_by_type(file_name: str, kind: str) -> dict[int, type[Message]]:
    return {
        spec.key: getattr(messages, spec.name)
        for spec in schema.load_file(file_name).values()
        if spec.kind == kind and spec.key is not None
    }


def message_to_json(message_type: type[Message], content: bytes, version: int) -> dict[str, Any]:
    """The message behind the first int16, as Kafka's JSON converters show it."""
    message, _ = message_type.decode(content, version, _INT16_BYTES)
    return _struct_to_json(message, message_type.SPEC.fields, version)


def _struct_to_json(struct: Struct, specs: tuple[FieldSpec, ...], version: int) -> dict[str, Any]:
    fields = {}
    for spec in specs:
        value = getattr(struct, spec.attribute)
        is_default = value == _default(spec, type(struct))
        if version in spec.versions and not (spec.tag is not None and is_default):
            fields[spec.name[0].lower() + spec.name[1:]] = _value_to_json(value, spec, version)
    return fields


def _default(spec: FieldSpec, owner: type[Struct]) -> Any:
    if spec.default_is_null:
        return None
    if spec.is_array:
        return []
    return getattr(owner, spec.class_name)() if spec.fields else spec.default


def _value_to_json(value: Any, spec: FieldSpec, version: int) -> Any:
    if value is None:
        return None
    if spec.is_array:
        return [_element_to_json(element, spec, version) for element in value]
    return _element_to_json(value, spec, version)


def _element_to_json(value: Any, spec: FieldSpec, version: int) -> Any:
    if spec.fields:
        return _struct_to_json(value, spec.fields, version)
    if spec.type == "uuid":
        return uuid_to_text(UUID(bytes=bytes(value)))
    if spec.type == "bytes":
        return base64.b64encode(value).decode("ascii")
    return value


def _open_consumer_protocol(fields: dict[str, Any]) -> None:
    """Decode the two bytes fields of each classic member in place; damaged ones are left as they are."""
    if fields.get("protocolType") != "consumer":
        return
    inner: Mapping[str, type[Message]] = {
        "subscription": messages.ConsumerProtocolSubscription,
        "assignment": messages.ConsumerProtocolAssignment,
    }
    for member in fields.get("members", ()):
        for name, message_type in inner.items():
            content = base64.b64decode(member[name])
            try:
                member[name] = message_to_json(message_type, content, _read_int16(content))
            except (ProtocolError, ValueError):
                continue


def _read_int16(content: bytes) -> int:
    if len(content) < _INT16_BYTES:
        raise ValueError(f"{len(content)} bytes where a version must be")
    return int.from_bytes(content[:_INT16_BYTES], "big", signed=True)


def to_json(fields: Mapping[str, Any]) -> str:
    """Compact JSON, with control characters escaped in capital digits as Kafka's writer does."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _LOWER_CASE_ESCAPE.sub(lambda match: match[1] + match[2].upper(), text)
