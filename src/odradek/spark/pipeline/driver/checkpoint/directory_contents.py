"""What the files in a sink's directory hold, and which changes of it the directory can take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.model import FileSink, Sink, SnapshotSink

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_Shape = Any
"""What of a type matters to files: its name, or {"struct": {name: shape}}, {"array": …}, {"map": …}."""


def contents_of(sink: Sink | None, schema: StructType) -> dict[str, Any] | None:
    """What later micro-batches rely on; None for sinks without files, or whose files are all written anew."""
    if isinstance(sink, SnapshotSink):
        if sink.mode == "complete":
            return None
        keyed = {"key": list(sink.key), "order_by": list(sink.order_by), "partition_by": []}
        return {**keyed, "columns": _shape(schema)}
    if isinstance(sink, FileSink):
        # Delta keeps the columns itself, refuses what does not fit, and changes them by its own options.
        columns = _shape(schema) if sink.kind == "parquet" else None
        keyed = {"key": list(sink.key), "order_by": list(sink.order_by)}
        return {**keyed, "partition_by": list(sink.partition_by), "columns": columns}
    return None


def _shape(kind: DataType) -> _Shape:
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415

    if isinstance(kind, StructType):
        return {"struct": {field.name: _shape(field.dataType) for field in kind.fields}}
    if isinstance(kind, ArrayType):
        return {"array": _shape(kind.elementType)}
    if isinstance(kind, MapType):
        return {"map": [_shape(kind.keyType), _shape(kind.valueType)]}
    return kind.simpleString()


def contents_difference(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str | None:
    """Why a directory cannot take the rows, as the end of a sentence; None if it can, as with new columns."""
    if before is None or now is None:
        return None
    for name, rows in (("key", "rows of one key"), ("order_by", "newest rows"), ("partition_by", "files")):
        if before[name] != now[name]:
            return (
                f"the {rows} in its directory are by {name} {_listed(before[name])}, "
                f"and now by {_listed(now[name])}"
            )
    if before["columns"] is None or now["columns"] is None:
        return None
    return _shape_difference(before["columns"], now["columns"], "")


def _shape_difference(before: _Shape, now: _Shape, path: str) -> str | None:
    kind = next(iter(before)) if isinstance(before, Mapping) else None
    if kind is None or not isinstance(now, Mapping) or kind not in now:
        if before == now:
            return None
        return f"the column {path} in its directory is of the type {_text(before)}, and is now {_text(now)}"
    inner_before, inner_now = before[kind], now[kind]
    if kind == "array":
        return _shape_difference(inner_before, inner_now, f"{path}[]")
    if kind == "map":
        pairs = zip(inner_before, inner_now, (f"{path}.key", f"{path}.value"), strict=True)
        return next((found for pair in pairs if (found := _shape_difference(*pair)) is not None), None)
    for name, there in inner_before.items():
        inner = f"{path}.{name}" if path else name
        if name not in inner_now:
            return f"its directory has the column {inner}, which is no longer there"
        found = _shape_difference(there, inner_now[name], inner)
        if found is not None:
            return found
    return None


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"


def _text(shape: _Shape) -> str:
    return next(iter(shape)) if isinstance(shape, Mapping) else str(shape)
