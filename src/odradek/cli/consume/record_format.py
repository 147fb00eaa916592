r"""Records as bytes to print: kcat's format strings, JSON lines, or the columns of Kafka's console consumer.

%s value      %k key        %t topic       %T timestamp in ms   %h headers, name=value by commas
%S its size   %K its size   %p partition   %o offset            %% a percent sign
\n \r \t \\ \0 \xFF         characters that are hard to type
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping

from odradek.cli.options import UsageProblem
from odradek.client.consumer.consumer_record import ConsumerRecord

Record = ConsumerRecord[bytes, bytes]
Format = Callable[[Record], bytes]

_NULL_SIZE = -1
_LOG_APPEND_TIME = 1

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
_TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|([^%\\]+)", re.DOTALL)


def unescape(text: str) -> bytes:
    r"""A delimiter as it was typed: \t is a tab."""
    return b"".join(_escaped(found) for found in _TOKEN.finditer(text.replace("%", "%%")))


def format_string(text: str, null: bytes = b"") -> Format:
    """The format that a string of kcat's describes; UsageProblem for an unknown token."""
    fields = _fields(null)
    parts: list[bytes | Format] = []
    for found in _TOKEN.finditer(text):
        token = found[1]
        if token is None or token == "%":
            parts.append(_escaped(found))
        elif token in fields:
            parts.append(fields[token])
        else:
            known = " ".join(f"%{name}" for name in fields)
            raise UsageProblem(f"-f has no %{token}; there are {known} %%")

    def render(record: Record) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(record) for part in parts)

    return render


def plain(delimiter: bytes, key_delimiter: bytes | None, null: bytes) -> Format:
    """The value and a delimiter, with the key in front of it if there is a delimiter for that."""

    def render(record: Record) -> bytes:
        value = null if record.value is None else record.value
        if key_delimiter is None:
            return value + delimiter
        key = null if record.key is None else record.key
        return key + key_delimiter + value + delimiter

    return render


def as_json(record: Record) -> bytes:
    """One object in one line, with kcat's names; what is not UTF-8 is in base64 under another name."""
    fields: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "tstype": "logappend" if record.timestamp_type == _LOG_APPEND_TIME else "create",
        "ts": record.timestamp,
        "headers": [part for name, value in record.headers for part in (name, _lossy(value))],
        **_text("key", record.key),
        **_text("payload", record.value),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def console(properties: Mapping[str, str]) -> Format:
    """The columns of kafka-console-consumer: print.key=true, key.separator=: and the like."""
    separator = unescape(properties.get("key.separator", "\\t"))
    line = unescape(properties.get("line.separator", "\\n"))
    null = properties.get("null.literal", "null").encode()
    between_headers = properties.get("headers.separator", ",").encode()
    columns: list[Format] = []

    def column(name: str, default: bool, show: Format) -> None:
        if properties.get(name, str(default)).lower() == "true":
            columns.append(show)

    column("print.timestamp", False, _console_timestamp)
    column("print.partition", False, lambda record: b"Partition:%d" % record.partition)
    column("print.offset", False, lambda record: b"Offset:%d" % record.offset)
    column("print.headers", False, lambda record: _console_headers(record, between_headers, null))
    column("print.key", False, lambda record: null if record.key is None else record.key)
    column("print.value", True, lambda record: null if record.value is None else record.value)
    return lambda record: separator.join(show(record) for show in columns) + line


CONSOLE_PROPERTIES = frozenset(
    {
        "print.timestamp",
        "print.partition",
        "print.offset",
        "print.headers",
        "print.key",
        "print.value",
        "key.separator",
        "line.separator",
        "headers.separator",
        "null.literal",
    }
)


def _fields(null: bytes) -> dict[str, Format]:
    return {
        "s": lambda record: null if record.value is None else record.value,
        "k": lambda record: null if record.key is None else record.key,
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "h": lambda record: b",".join(_header(name, value, b"=", null) for name, value in record.headers),
        "S": lambda record: b"%d" % (_NULL_SIZE if record.value is None else len(record.value)),
        "K": lambda record: b"%d" % (_NULL_SIZE if record.key is None else len(record.key)),
    }


def _escaped(found: re.Match[str]) -> bytes:
    percent, escape, text = found.groups()
    if text is not None:
        return str(text).encode()
    if percent is not None:
        return b"%"
    if len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    return _ESCAPES.get(escape, b"\\" + escape.encode())


def _header(name: str, value: bytes | None, between: bytes, null: bytes) -> bytes:
    return name.encode() + between + (null if value is None else value)


def _console_timestamp(record: Record) -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (
        b"LogAppendTime" if record.timestamp_type == _LOG_APPEND_TIME else b"CreateTime",
        record.timestamp,
    )


def _console_headers(record: Record, between: bytes, null: bytes) -> bytes:
    if not record.headers:
        return b"NO_HEADERS"
    return between.join(_header(name, value, b":", null) for name, value in record.headers)


def _text(name: str, raw: bytes | None) -> dict[str, str | None]:
    if raw is None:
        return {name: None}
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def _lossy(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", "replace")
