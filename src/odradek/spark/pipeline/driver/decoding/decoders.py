"""Decoders of Avro, Protobuf and Arrow values; they run in Spark's Python workers, on Arrow batches."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.model import Schema
from odradek.spark.pipeline.driver.decoding.arrow_values import arrow_decoder

if TYPE_CHECKING:
    import pyarrow as pa

Decode = Callable[[bytes], list[dict[str, Any]]]
"""Rows of one value. What it raises is the reason why a record is bad."""

DecodeBatches = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
_LOGICAL_READERS: dict[str, Callable[..., Any]] = {
    "int-odradek-time-millis": lambda value, *_: value,
    "long-odradek-time-micros": lambda value, *_: value,
    "long-odradek-timestamp-nanos": lambda value, *_: value // 1000,
    "string-odradek-uuid": lambda value, *_: value,
    "fixed-odradek-uuid": lambda value, *_: str(uuid.UUID(bytes=value)),
}
"""Logical types that fastavro makes objects of which are no values of the column, or does not know."""

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which a Timestamp of Protobuf may have."""


def decoder(schema: Schema, output: pa.Schema) -> DecodeBatches:
    """A function for mapInArrow: the columns of the schema, then the record's own, `_error` and `_value`."""
    names = [field.name for field in schema.fields]
    required = [field.name for field in schema.fields if not field.nullable]

    def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415

        decode = _decode_function(schema, output)
        for batch in batches:
            records = [_rows(record, decode, schema.skip_bytes, required) for record in batch.to_pylist()]
            yield _as_batch(pa, records, names, output)

    return decode_batches


def _rows(
    record: Mapping[str, Any], decode: Decode, skip_bytes: int, required: list[str]
) -> list[dict[str, Any]]:
    """The rows of one record; a single one with `_error` if any of them does not fit."""
    own = {f"_{name}": one for name, one in record.items()}
    if record["value"] is None:
        return [{**own, "_error": None}]
    try:
        found = decode(record["value"][skip_bytes:])
        for row in found:
            for name in required:
                if row.get(name) is None:
                    raise ValueError(f"the field {name} is missing or null")
    except Exception as error:  # decoders raise what they like for bytes that do not fit
        return [{**own, "_error": str(error) or type(error).__name__}]
    return [{**row, **own, "_error": None} for row in found]


def _as_batch(pa: Any, records: list[list[dict[str, Any]]], names: list[str], output: Any) -> Any:
    """The rows of all records as one batch; records that do not fit the types become bad ones."""
    try:
        return pa.RecordBatch.from_pylist([row for rows in records for row in rows], schema=output)
    except _misfits(pa):
        checked = [row for rows in records for row in _checked(pa, rows, names, output)]
        return pa.RecordBatch.from_pylist(checked, schema=output)


def _checked(pa: Any, rows: list[dict[str, Any]], names: list[str], output: Any) -> list[dict[str, Any]]:
    """The rows of one record if all of them fit, else one bad row."""
    try:
        pa.RecordBatch.from_pylist(rows, schema=output)
    except _misfits(pa) as error:
        return [{**{key: one for key, one in rows[0].items() if key not in names}, "_error": str(error)}]
    return rows


def _misfits(pa: Any) -> tuple[type[Exception], ...]:
    """What Arrow raises for values that do not fit a type."""
    return (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _decode_function(schema: Schema, output: pa.Schema) -> Decode:
    if schema.format == "avro":
        return _avro(schema)
    if schema.format == "protobuf":
        return _protobuf(schema)
    return arrow_decoder({field.name: output.field(field.name).type for field in schema.fields})


def _avro(schema: Schema) -> Decode:
    import fastavro  # noqa: PLC0415

    fastavro.read.LOGICAL_READERS.update(_LOGICAL_READERS)
    parsed = fastavro.parse_schema(_with_own_logical_types(json.loads(schema.definition)))

    def decode(value: bytes) -> list[dict[str, Any]]:
        stream = io.BytesIO(value)
        row = fastavro.schemaless_reader(stream, parsed)
        if stream.tell() != len(value):
            raise ValueError(f"{len(value) - stream.tell()} bytes are left after the Avro record")
        assert isinstance(row, dict)
        return [row]

    return decode


def _with_own_logical_types(given: Any) -> Any:
    """An Avro schema whose logical types that Spark has in another form are read by our functions."""
    if isinstance(given, list):
        return [_with_own_logical_types(one) for one in given]
    if not isinstance(given, dict):
        return given
    found = {key: _with_own_logical_types(one) for key, one in given.items() if key != "default"}
    own = f"odradek-{given.get('logicalType')}"
    if f"{given.get('type')}-{own}" in _LOGICAL_READERS:
        found["logicalType"] = own
    return found


def _protobuf(schema: Schema) -> Decode:
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    from odradek.spark.pipeline.definition.schema_files import message_descriptor  # noqa: PLC0415

    message_class = GetMessageClass(message_descriptor(schema.definition, schema.message))

    def decode(value: bytes) -> list[dict[str, Any]]:
        try:
            return [_message_row(message_class.FromString(value))]
        except DecodeError as error:
            raise ValueError(str(error) or "not a Protobuf message") from None

    return decode


def _message_row(message: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            row[field.name] = None
            continue
        value = getattr(message, field.name)
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            inner = field.message_type.fields_by_name["value"]
            row[field.name] = [(key, _protobuf_value(inner, value[key])) for key in value]
        elif field.is_repeated:
            row[field.name] = [_protobuf_value(field, one) for one in value]
        else:
            row[field.name] = _protobuf_value(field, value)
    return row


def _protobuf_value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return _microseconds(value.seconds, value.nanos)
        return _message_row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else str(value)
    return value


def _microseconds(seconds: int, nanos: int) -> int:
    """A Timestamp since 1970; ValueError for one that Protobuf does not allow."""
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND or not 0 <= nanos < 10**9:
        raise ValueError(f"the Timestamp of {seconds} s and {nanos} ns is out of range")
    return seconds * 10**6 + nanos // 1000
