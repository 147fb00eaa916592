"""Schemas from files: Avro (.avsc), Protobuf descriptor sets (.desc) and lists of fields (.ddl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from odradek.spark.pipeline.definition.model import Schema
from odradek.spark.pipeline.definition.types import Field, WrongType, fields_of, quoted

_AVRO = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "fixed": "binary",
    "string": "string",
    "enum": "string",
}
_AVRO_LOGICAL: dict[tuple[Any, Any], str] = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "timestamp-nanos"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
    ("fixed", "uuid"): "string",
}
"""A logical type on another type has no meaning, as Avro has it."""


def avro_schema(text: str, skip_bytes: int) -> Schema:
    """The schema of an Avro record type; WrongType says why it cannot be one."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise WrongType(f"the Avro schema is not JSON: {error}") from None
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise WrongType('the Avro schema must be one record: {"type": "record", "name": …, "fields": […]}')
    fields = _avro_fields(parsed, {})
    return Schema(format="avro", fields=fields, definition=text.encode(), skip_bytes=skip_bytes)


def _avro_fields(record: dict[str, Any], named: dict[str, str]) -> tuple[Field, ...]:
    name = str(record.get("name", ""))
    if named.get(name) == "":
        raise WrongType(f"the Avro type {name} contains itself, which Spark's tables cannot")
    named[name] = ""
    found = []
    for one in record.get("fields", ()):
        if not isinstance(one, dict) or "name" not in one or "type" not in one:
            raise WrongType(f"a field of the Avro record {name} lacks its name or its type")
        type_name, nullable = _avro_type(one["type"], named)
        found.append(Field(one["name"], type_name, nullable))
    named[name] = _struct(found)
    return tuple(found)


def _avro_type(given: Any, named: dict[str, str]) -> tuple[str, bool]:
    """A Spark type, and whether it may be null."""
    if isinstance(given, list):
        others = [one for one in given if one != "null"]
        if len(others) != 1:
            raise WrongType(f"an Avro union of {len(others)} types is not supported; one type and null is")
        return _avro_type(others[0], named)[0], len(others) < len(given)
    if isinstance(given, str):
        if given in named and not named[given]:
            raise WrongType(f"the Avro type {given} contains itself, which Spark's tables cannot")
        found = _AVRO.get(given) or named.get(given)
        if found is None:
            raise WrongType(f"unknown Avro type {given!r}")
        return found, False
    if not isinstance(given, dict):
        raise WrongType(f"{given!r} is not an Avro type")
    return _avro_complex(given, named), False


def _avro_complex(given: dict[str, Any], named: dict[str, str]) -> str:
    kind = given.get("type")
    if kind == "record":
        _avro_fields(given, named)
        return named[str(given.get("name", ""))]
    if kind == "array":
        return f"array<{_avro_type(given.get('items'), named)[0]}>"
    if kind == "map":
        return f"map<string,{_avro_type(given.get('values'), named)[0]}>"
    type_name = _avro_logical(given) or _avro_type(kind, named)[0]
    if kind in ("enum", "fixed") and "name" in given:
        named[given["name"]] = type_name
    return type_name


def _avro_logical(given: dict[str, Any]) -> str | None:
    kind, logical = given.get("type"), given.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return f"decimal({given.get('precision', 10)},{given.get('scale', 0)})"
    return _AVRO_LOGICAL.get((kind, logical)) if isinstance(kind, str) else None


def _struct(fields: list[Field]) -> str:
    return f"struct<{', '.join(f'{quoted(one.name)}: {one.type}' for one in fields)}>"


def protobuf_schema(descriptor_set: bytes, message: str, skip_bytes: int) -> Schema:
    """The schema of a message of a descriptor set, as `protoc --include_imports -o` writes it."""
    descriptor = message_descriptor(descriptor_set, message)
    fields = tuple(_protobuf_field(one, (message,)) for one in descriptor.fields)
    return Schema(
        format="protobuf", fields=fields, definition=descriptor_set, message=message, skip_bytes=skip_bytes
    )


def message_descriptor(descriptor_set: bytes, message: str) -> Any:
    """Protobuf's descriptor of a message; WrongType names the messages that there are."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415
        from google.protobuf.message import DecodeError  # noqa: PLC0415
    except ImportError:
        raise WrongType("Protobuf needs the package protobuf: pip install 'odradek[spark]'") from None
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptor_set)
    except DecodeError:
        raise WrongType("not a descriptor set: make it by `protoc --include_imports -o FILE`") from None
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    names = [
        name for one in files.file for it in one.message_type for name in _message_names(it, one.package)
    ]
    if message not in names:
        raise WrongType(f"there is no message {message!r}; the descriptor set has {', '.join(names)}")
    return pool.FindMessageTypeByName(message)


def _message_names(message: Any, outer: str) -> list[str]:
    """A message and those inside it, but for the entries of maps."""
    name = f"{outer}.{message.name}".lstrip(".")
    inner = [one for one in message.nested_type if not one.options.map_entry]
    return [name, *(found for one in inner for found in _message_names(one, name))]


def _protobuf_field(field: Any, outer: tuple[str, ...]) -> Field:
    element = _protobuf_type(field, outer)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return Field(field.name, f"map<{_protobuf_type(key, outer)},{_protobuf_type(value, outer)}>")
    return Field(field.name, f"array<{element}>" if field.is_repeated else element)


def _protobuf_type(field: Any, outer: tuple[str, ...]) -> str:
    names = {"int32": "int", "int64": "bigint", "uint32": "bigint", "uint64": "decimal(20,0)"}
    names |= {"float": "float", "double": "double", "bool": "boolean", "string": "string", "enum": "string"}
    if field.message_type is None:
        if field.type == field.TYPE_BYTES:
            return "binary"
        kinds = {getattr(field, f"CPPTYPE_{name.upper()}"): name for name in names}
        return names[kinds[field.cpp_type]]
    inner = field.message_type.full_name
    if inner == "google.protobuf.Timestamp":
        return "timestamp"
    if inner in outer:
        raise WrongType(f"the message {inner} contains itself, which Spark's tables cannot")
    return _struct([_protobuf_field(one, (*outer, inner)) for one in field.message_type.fields])


def schema_from_file(path: Path, format_name: str, message: str | None, skip_bytes: int) -> Schema:
    """The schema in a file, by the format of the records."""
    if format_name == "avro":
        return avro_schema(path.read_text(), skip_bytes)
    if format_name == "protobuf":
        if not message:
            raise WrongType("which message of the descriptor set? Name it by `message: package.Name`")
        return protobuf_schema(path.read_bytes(), message, skip_bytes)
    return Schema(format=format_name, fields=fields_of(path.read_text()), skip_bytes=skip_bytes)
