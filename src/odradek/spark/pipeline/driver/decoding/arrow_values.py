"""Values that are Arrow streams: their rows, if their columns are of the schema's types.

Arrow's own conversions are not asked: they make times of numbers, and whole numbers of 1.0 but not of 1.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

_TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
_BYTES = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view)
_KINDS = ((types.is_boolean,), (*_TEXTS, *_BYTES), (types.is_date,), (types.is_timestamp,))
"""Types of one kind hold each other's values, or a value that does not fit is seen when it is converted."""


def arrow_decoder(wanted: Mapping[str, pa.DataType]) -> Callable[[bytes], list[dict[str, Any]]]:
    """A function from a value to its rows, of the wanted columns; ValueError if one is not there."""

    def decode(value: bytes) -> list[dict[str, Any]]:
        try:
            table = pa.ipc.open_stream(value).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"not an Arrow stream: {error}") from None
        for name, kind in wanted.items():
            if name not in table.column_names:
                raise ValueError(f"the Arrow table lacks the column {name}")
            found = table.schema.field(name).type
            if not holds(kind, found):
                raise ValueError(f"the Arrow column {name} is {found}, and the schema has {kind}")
        rows: list[dict[str, Any]] = table.select(list(wanted)).to_pylist()
        return rows

    return decode


def holds(wanted: pa.DataType, found: pa.DataType) -> bool:
    """Whether a column of one type can have the values of another, or some of them."""
    if wanted == found or types.is_null(found):
        return True
    if types.is_dictionary(found):
        return holds(wanted, found.value_type)
    if isinstance(found, pa.BaseExtensionType):
        return holds(wanted, found.storage_type)
    if types.is_map(wanted):
        return (
            types.is_map(found)
            and holds(wanted.key_type, found.key_type)
            and holds(wanted.item_type, found.item_type)
        )
    if types.is_list(wanted):
        return _is(_LISTS, found) and holds(wanted.value_type, found.value_type)
    if types.is_struct(wanted):
        return types.is_struct(found) and _holds_fields(wanted, found)
    return _holds_number(wanted, found) or any(_is(kind, wanted) and _is(kind, found) for kind in _KINDS)


def _holds_number(wanted: pa.DataType, found: pa.DataType) -> bool:
    if types.is_integer(wanted):
        return bool(types.is_integer(found))
    if types.is_decimal(wanted):
        return bool(types.is_decimal(found) or types.is_integer(found))
    return bool(types.is_floating(wanted) and (types.is_floating(found) or types.is_integer(found)))


def _is(kind: Sequence[Callable[[pa.DataType], bool]], found: pa.DataType) -> bool:
    return any(is_one(found) for is_one in kind)


def _holds_fields(wanted: pa.DataType, found: pa.DataType) -> bool:
    """By name; a field that is not there is null."""
    there = {field.name: field.type for field in found}
    return all(holds(field.type, there[field.name]) for field in wanted if field.name in there)
