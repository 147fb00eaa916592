"""Which columns of a table make records, and what they may hold.

column       Arrow type                     without it
value        binary or text                 it must be there
key          binary or text                 no keys
headers      list<struct<key, value>>       no headers
timestamp    timestamp, or int64 in ms      now
partition    integer                        by the key as Java does; without a key a full batch each
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.records.errors import InvalidRecord

if TYPE_CHECKING:
    import pyarrow as pa


def checked_columns(table: pa.Table) -> pa.Table:
    """The table, less columns that hold nothing; InvalidRecord says which is missing, or of a wrong type."""
    if "value" not in table.column_names:
        raise InvalidRecord(f"a table without a column named value; it has {', '.join(table.column_names)}")
    for name, (wanted, is_right) in _WANTED.items():
        if name in table.column_names and not is_right(table.schema.field(name).type):
            column = table.column(name)
            # Libraries give columns without any value whatever type they like.
            if column.null_count < len(column):
                raise InvalidRecord(f"the column {name} is of type {column.type}; it must be {wanted}")
            table = _without_values(table, name)
    return table


def _without_values(table: pa.Table, name: str) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    if name != "value":
        return table.drop_columns([name])
    nulls = pa.nulls(table.num_rows, pa.binary())
    return table.set_column(table.column_names.index(name), name, nulls)


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_binary(kind)
        or types.is_string(kind)
        or types.is_large_binary(kind)
        or types.is_large_string(kind)
        or types.is_binary_view(kind)
        or types.is_string_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _is_headers(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415

    if not types.is_list(kind) and not types.is_large_list(kind):
        return False
    pair = kind.value_type
    if not types.is_struct(pair):
        return bool(types.is_null(pair))
    return {pair.field(number).name for number in range(pair.num_fields)} == {"key", "value"}


def _is_time(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415

    return bool(types.is_timestamp(kind) or types.is_integer(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415

    return bool(types.is_integer(kind))


_WANTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "value": ("binary or text: cast it, or make bytes of it", _is_bytes),
    "key": ("binary or text: cast it, or make bytes of it", _is_bytes),
    "headers": ("a list of structs of key and value", _is_headers),
    "timestamp": ("a timestamp, or integers: milliseconds since 1970", _is_time),
    "partition": ("integers", _is_number),
}
