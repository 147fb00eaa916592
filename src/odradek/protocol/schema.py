"""Reads the schema files: text to MessageSpec. The grammar is in schemas/README.md.

request FetchRequest  key=1  versions=0-18  flexible=12+
  Topics         []struct  0+
    Topic        string    0-12
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from odradek.protocol.errors import SchemaError

SCHEMA_DIR = os.path.join(os.path.dirname(__file__), "schemas")
MAX_VERSION = 32767
KINDS = ("request", "response", "header", "data", "coordinator-key", "coordinator-value")
SHARED_FILES = ("headers.txt", "records.txt", "consumer-offsets.txt", "transaction-state.txt")
Scalar = bool | int | float | str | bytes | None
ZEROS: dict[str, Scalar] = {
    "bool": False,
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), 0),
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": bytes(16),
}
TYPES = frozenset(ZEROS) | {"struct"}


class Versions(NamedTuple):
    """A closed range of versions; `low > high` is the empty one."""

    low: int
    high: int

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high


NO_VERSIONS = Versions(1, 0)


class FieldSpec(NamedTuple):
    """One field of a struct, in all versions that have it."""

    name: str
    attribute: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default_is_null: bool
    default: Scalar
    is_key: bool
    never_compact: bool
    fields: tuple[FieldSpec, ...]

    @property
    def class_name(self) -> str:
        """The name of the class that holds this field's struct."""
        return self.name[0].upper() + self.name[1:]


class MessageSpec(NamedTuple):
    """One message, in all its versions."""

    kind: str
    name: str
    key: int | None
    versions: Versions
    flexible: Versions
    unstable: Versions
    fields: tuple[FieldSpec, ...]

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact lengths and tagged fields."""
        return version in self.flexible


class _Line(NamedTuple):
    depth: int
    words: list[str]


@cache
def parse_versions(text: str) -> Versions:
    """`3`, `3+`, `3-5` or `none`."""
    if text == "none":
        return NO_VERSIONS
    match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    if match is None:
        raise SchemaError(f"not a version range: {text!r}")
    low = int(match[1])
    if match[2] is None:
        return Versions(low, low)
    return Versions(low, MAX_VERSION if match[3] is None else int(match[3]))


@cache
def snake_case(name: str) -> str:
    """`IsKRaftController` to `is_kraft_controller`."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft"))
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text).lower()
    return text + "_" if keyword.iskeyword(text) else text


def parse(text: str) -> list[MessageSpec]:
    """All messages of one schema file, in file order."""
    messages = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        head, *rest = block.splitlines()
        lines = [_Line((len(row) - len(row.lstrip())) // 2, row.split()) for row in rest]
        messages.append(_parse_message(head.split(), lines))
    return messages


def _parse_message(head: list[str], lines: list[_Line]) -> MessageSpec:
    kind, name, *words = head
    options = dict(word.split("=", 1) for word in words)
    if kind not in KINDS:
        raise SchemaError(f"{name}: unknown kind {kind!r}")
    fields, end = _parse_fields(lines, 0, depth=1)
    if end != len(lines):
        raise SchemaError(f"{name}: line {end + 2} is indented wrongly")
    return MessageSpec(
        kind=kind,
        name=name,
        key=int(options["key"]) if "key" in options else None,
        versions=parse_versions(options["versions"]),
        flexible=parse_versions(options["flexible"]),
        unstable=parse_versions(options.get("unstable", "none")),
        fields=fields,
    )


def _parse_fields(lines: list[_Line], start: int, depth: int) -> tuple[tuple[FieldSpec, ...], int]:
    fields = []
    at = start
    while at < len(lines) and lines[at].depth == depth:
        words = lines[at].words
        children, at = _parse_fields(lines, at + 1, depth + 1)
        fields.append(_parse_field(words, children))
    return tuple(fields), at


def _parse_field(words: list[str], children: tuple[FieldSpec, ...]) -> FieldSpec:
    name, type_text, versions, *flags = words
    options = dict(flag.partition("=")[::2] for flag in flags)
    unknown = options.keys() - {"null", "tag", "default", "key", "never-compact"}
    type_name = type_text.removeprefix("[]")
    if unknown or type_name not in TYPES or bool(children) != (type_name == "struct"):
        raise SchemaError(f"field {name} is not understood: {' '.join(words)}")
    is_array = type_text != type_name
    return FieldSpec(
        name=name,
        attribute=snake_case(name),
        type=type_name,
        is_array=is_array,
        versions=parse_versions(versions),
        nullable=parse_versions(options.get("null", "none")),
        tag=int(options["tag"]) if "tag" in options else None,
        default_is_null=options.get("default") == "null",
        default=_parse_default(name, "[]" if is_array else type_name, options.get("default")),
        is_key="key" in options,
        never_compact="never-compact" in options,
        fields=children,
    )


def _parse_default(name: str, type_name: str, text: str | None) -> Scalar:
    """The default of a scalar; None for null, and for arrays and structs, which start out empty."""
    if text == "null" or (text is None and type_name in ("[]", "struct")):
        return None
    if text is None:
        return ZEROS[type_name]
    if type_name == "bool" and text in ("true", "false"):
        return text == "true"
    if type_name == "string":
        return text.strip('"')
    if "int" in type_name:
        return int(text)
    raise SchemaError(f"field {name}: {type_name} cannot have the default {text}")


@cache
def _files_by_api() -> dict[str, str]:
    """`Fetch` to `01-Fetch.txt`, in the order of the keys."""
    files = sorted(file for file in os.listdir(SCHEMA_DIR) if file[0].isdigit())
    return {file.removesuffix(".txt").partition("-")[2]: file for file in files}


@cache
def load_file(file: str) -> dict[str, MessageSpec]:
    """The messages of one schema file by name, in file order."""
    with open(os.path.join(SCHEMA_DIR, file), encoding="utf-8") as source:
        return {spec.name: spec for spec in parse(source.read())}


def _files_of(name: str) -> Iterator[str]:
    api = name.removesuffix("Request").removesuffix("Response")
    if api in _files_by_api():
        yield _files_by_api()[api]
    yield from SHARED_FILES


def load(name: str) -> MessageSpec:
    """One message by name; only the file that may hold it is read. KeyError if there is none."""
    for file in _files_of(name):
        if name in load_file(file):
            return load_file(file)[name]
    raise KeyError(name)


@cache
def load_by_key(kind: str, key: int) -> MessageSpec:
    """The request or response of an API by its key; KeyError if there is none."""
    for file in _files_by_api().values():
        if file.startswith(f"{key:02d}-"):
            for spec in load_file(file).values():
                if spec.kind == kind:
                    return spec
    raise KeyError(key)


def load_all() -> dict[str, MessageSpec]:
    """Every message of every schema file by name, in API key order."""
    files = [*_files_by_api().values(), *SHARED_FILES]
    return {name: spec for file in files for name, spec in load_file(file).items()}
