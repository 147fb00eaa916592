"""The kio library as an oracle: its class for each of our message versions, and what it can express.

kio reads some numbers as times, error codes and the like, and so cannot hold every value of the wire type.
`overrides` walks its class beside our schema and narrows exactly those fields.
"""

from __future__ import annotations

import dataclasses
import io
from functools import cache
from pkgutil import resolve_name
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from odradek.protocol.schema import FieldSpec, MessageSpec

# Python's datetime ends with the year 9999; its timedelta counts days, but kio passes it through a float.
MAX_TIME_MS = 253_402_300_799_000
MAX_DELTA_MS = 1 << 43
NARROWED: dict[str, SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in ErrorCode]),
    "timedelta_i64": st.integers(-MAX_DELTA_MS, MAX_DELTA_MS),
    "datetime_i64": st.integers(0, MAX_TIME_MS),
}


@cache
def entity_paths() -> dict[tuple[str, int], str]:
    """Where kio keeps the class of a message version: `{("FetchRequest", 4): "kio.schema…:FetchRequest"}`."""
    return {
        (path.partition(":")[2], version): path
        for versions in schema_name_map.values()
        for version, paths in versions.items()
        for path in paths.values()
    }


@cache
def entity(message: str, version: int) -> Any:
    """kio's class for a message version that it has."""
    return resolve_name(entity_paths()[message, version])


def read(message: str, version: int, encoded: bytes) -> tuple[Any, int]:
    """kio's object for these bytes, and how many of them it took."""
    result: tuple[Any, int] = entity_reader(entity(message, version))(encoded, 0)
    return result


def write(message: str, version: int, content: Any) -> bytes:
    """The bytes that kio makes of its object."""
    buffer = io.BytesIO()
    entity_writer(entity(message, version))(buffer, content)
    return buffer.getvalue()


def overrides(spec: MessageSpec, version: int) -> dict[str, SearchStrategy[Any]]:
    """For our strategies: what kio can hold in the fields that it narrows."""
    return dict(_overrides(spec.fields, entity(spec.name, version), version, ""))


def _overrides(
    specs: tuple[FieldSpec, ...], entity_type: Any, version: int, path: str
) -> list[tuple[str, SearchStrategy[Any]]]:
    ours = [spec for spec in specs if version in spec.versions]
    narrowed = []
    # The names differ here and there (max_wait_ms is max_wait), the order does not.
    for spec, peer in zip(ours, dataclasses.fields(entity_type), strict=True):
        assert peer.metadata.get("tag") == spec.tag, f"{entity_type.__qualname__}.{peer.name}"
        if spec.fields:
            narrowed += _overrides(spec.fields, _struct_of(peer.type), version, f"{path}{spec.name}.")
        elif (strategy := _narrowed(peer)) is not None:
            narrowed.append((path + spec.name, strategy))
    return narrowed


def _narrowed(peer: dataclasses.Field[Any]) -> SearchStrategy[Any] | None:
    kafka_type = peer.metadata["kafka_type"]
    strategy = NARROWED.get(kafka_type)
    if strategy is not None and kafka_type == "datetime_i64" and type(None) in get_args(peer.type):
        return st.just(-1) | strategy
    return strategy


def _struct_of(annotation: Any) -> Any:
    """The dataclass inside `tuple[T, ...]`, `T | None` or both."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    return next(filter(None, map(_struct_of, get_args(annotation))), None)
