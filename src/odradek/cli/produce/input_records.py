r"""Parses the input into records: lines, keys before a delimiter, JSON objects, whole files.

value                                       a line
key DELIMITER value                         with -K
name:value,name:value TAB key TAB value     with parse.headers and parse.key, as for Kafka's console producer
{"key": …, "payload": …, "headers": […]}    with -J, as `odradek consume -J` prints it
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from odradek.cli.consume.record_format import unescape
from odradek.cli.options import UsageProblem

Headers = tuple[tuple[str, bytes | None], ...]


class InputRecord(NamedTuple):
    """A record to send; None where the flags decide."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class BadInput(UsageProblem):
    """An invalid record in the input; the number counts from 1."""

    exit_code = 1

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"record {number} of the input: {problem}")


Parse = Callable[[int, bytes], InputRecord]


def split(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[bytes]:
    """The pieces between delimiters; the last delimiter is optional."""
    kept = bytearray()
    for chunk in chunks:
        # A delimiter may begin in the last chunk; what was searched before is not searched again.
        searched = max(0, len(kept) - len(delimiter) + 1)
        kept += chunk
        if kept.find(delimiter, searched) >= 0:
            *pieces, rest = bytes(kept).split(delimiter)
            yield from pieces
            kept = bytearray(rest)
    if kept:
        yield bytes(kept)


@dataclass(frozen=True, slots=True)
class LineParser:
    """Reads a line as a record.

    With `key_delimiter` the key comes before it; with `header_delimiter` headers come first of all. A line
    without a delimiter that it needs is an error, or all value if `is_lenient`. What equals `null` is null.
    """

    key: bytes | None = None
    key_delimiter: bytes | None = None
    header_delimiter: bytes | None = None
    header_separator: bytes = b","
    header_key_separator: bytes = b":"
    null: bytes | None = None
    is_lenient: bool = True

    def __call__(self, number: int, line: bytes) -> InputRecord:
        """The record in a line."""
        headers: Headers = ()
        if self.header_delimiter is not None:
            first, line = self._cut(number, line, self.header_delimiter, "headers")
            headers = self._headers(number, first)
        key = self.key
        if self.key_delimiter is not None:
            found, line = self._cut(number, line, self.key_delimiter, "key")
            key = self._or_null(found)
        return InputRecord(key, self._or_null(line), headers)

    def _cut(self, number: int, line: bytes, delimiter: bytes, what: str) -> tuple[bytes | None, bytes]:
        before, found, after = line.partition(delimiter)
        if found:
            return before, after
        if not self.is_lenient:
            raise BadInput(number, f"no {what}: there is no {delimiter.decode(errors='replace')!r} in it")
        return None, line

    def _headers(self, number: int, raw: bytes | None) -> Headers:
        if not raw:
            return ()
        pairs = [pair.partition(self.header_key_separator) for pair in raw.split(self.header_separator)]
        for name, separator, _ in pairs:
            if not separator:
                raise BadInput(number, f"header {name.decode(errors='replace')!r} has no value")
        return tuple((name.decode(errors="replace"), self._or_null(value)) for name, _, value in pairs)

    def _or_null(self, raw: bytes | None) -> bytes | None:
        return None if raw is not None and raw == self.null else raw


def parse_json(number: int, line: bytes) -> InputRecord:
    """A record as `odradek consume -J` and kcat print it."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise TypeError("it is no JSON object")
        _check_fields(fields)
        return InputRecord(
            _json_bytes(fields, "key"),
            _json_bytes(fields, "value" if {"value", "value_base64"} & fields.keys() else "payload"),
            _json_headers(fields.get("headers") or []),
            _json_number(fields.get("ts")),
        )
    except (ValueError, TypeError) as error:
        raise BadInput(number, str(error)) from None


def console_parser(properties: Mapping[str, str]) -> LineParser:
    """The parser that the properties of kafka-console-producer describe."""
    unknown = sorted(set(properties) - READER_PROPERTIES)
    if unknown:
        raise UsageProblem(f"--property {unknown[0]}: there are {', '.join(sorted(READER_PROPERTIES))}")
    has_key = properties.get("parse.key", "false") == "true"
    has_headers = properties.get("parse.headers", "false") == "true"
    return LineParser(
        key_delimiter=unescape(properties.get("key.separator", "\\t")) if has_key else None,
        header_delimiter=unescape(properties.get("headers.delimiter", "\\t")) if has_headers else None,
        header_separator=unescape(properties.get("headers.separator", ",")),
        header_key_separator=unescape(properties.get("headers.key.separator", ":")),
        null=unescape(properties["null.marker"]) if "null.marker" in properties else None,
        is_lenient=properties.get("ignore.error", "false") == "true",
    )


READER_PROPERTIES = frozenset(
    {
        "parse.key",
        "key.separator",
        "parse.headers",
        "headers.delimiter",
        "headers.separator",
        "headers.key.separator",
        "null.marker",
        "ignore.error",
    }
)


# The last fields are printed by `consume -J` and kcat; they are ignored here.
_VALUE_FIELDS = ("payload", "payload_base64", "value", "value_base64")
_JSON_FIELDS = frozenset(
    {"key", "key_base64", *_VALUE_FIELDS, "headers", "ts", "tstype", "topic", "partition", "offset", "broker"}
)


def _check_fields(fields: Mapping[str, Any]) -> None:
    """Reject objects that would become a tombstone by mistake."""
    unknown = sorted(set(fields) - _JSON_FIELDS)
    if unknown:
        known = "key, payload (or value), headers and ts"
        raise ValueError(f"unknown field {unknown[0]!r}; a record has {known}")
    if not any(name in fields for name in _VALUE_FIELDS):
        raise ValueError("no field 'payload'; a tombstone has \"payload\": null")


def _json_bytes(fields: Mapping[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{name}_base64 is no base64: {error}") from None
    value = fields.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _json_headers(listed: Any) -> Headers:
    if not isinstance(listed, list) or len(listed) % 2:
        raise TypeError("headers is no list of names and values in turn")
    pairs = zip(listed[::2], listed[1::2], strict=True)
    return tuple((str(name), None if value is None else str(value).encode()) for name, value in pairs)


def _json_number(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"{value!r} is no whole number")
    return value
