"""Why a JSON value does not fit a schema: values in, a sentence out. For records that did not fit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

_WHOLE = {"byte": 7, "short": 15, "integer": 31, "long": 63}
_MOST_SHOWN = 60

# A type as Spark's `schema.jsonValue()` has it: a name, or a mapping with the key "type".
_Type = Any


def reason(value: bytes | None, schema: Mapping[str, Any]) -> str:
    """The first thing that does not fit."""
    if value is None:
        return "the record has no value"
    try:
        parsed = json.loads(value)
    except UnicodeDecodeError as error:
        return f"not a text in UTF-8: {error.reason} at byte {error.start}"
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON: nested too deeply"
    found = _misfit(parsed, {"type": "struct", "fields": schema["fields"]}, "")
    return found or "the value does not fit the schema"


def _misfit(value: Any, wanted: _Type, path: str) -> str | None:
    if value is None:
        return None
    kind = wanted["type"] if isinstance(wanted, Mapping) else wanted
    if kind == "struct":
        return _misfit_object(value, wanted, path)
    if kind == "array":
        if not isinstance(value, list):
            return _expected("an array", value, path)
        return _first(_misfit(one, wanted["elementType"], f"{path}[{n}]") for n, one in enumerate(value))
    if kind == "map":
        if not isinstance(value, dict):
            return _expected("an object", value, path)
        return _first(_misfit(one, wanted["valueType"], _inner(path, name)) for name, one in value.items())
    return _misfit_scalar(value, str(kind), path)


def _misfit_object(value: Any, wanted: _Type, path: str) -> str | None:
    if not isinstance(value, dict):
        return _expected("an object", value, path)
    for field in wanted["fields"]:
        name = field["name"]
        if value.get(name) is None:
            if not field["nullable"]:
                return f"the field {_inner(path, name)} is missing or null"
            continue
        found = _misfit(value[name], field["type"], _inner(path, name))
        if found is not None:
            return found
    return None


def _misfit_scalar(value: Any, kind: str, path: str) -> str | None:
    if kind == "boolean":
        return None if isinstance(value, bool) else _expected("true or false", value, path)
    if kind in _WHOLE:
        end = 2 ** _WHOLE[kind]
        fits = isinstance(value, int) and not isinstance(value, bool) and -end <= value < end
        return None if fits else _expected(f"a whole number ({kind})", value, path)
    if kind in ("double", "float") or kind.startswith("decimal"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = is_number or (isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"))
        return None if fits and not _is_odd(value, kind) else _expected(f"a number ({kind})", value, path)
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return None if _is_time(value, kind) else _expected(f"a {kind}", value, path)
    return None  # every value fits a string


def _is_odd(value: Any, kind: str) -> bool:
    return isinstance(value, float) and kind.startswith("decimal") and not math.isfinite(value)


def _is_time(value: Any, kind: str) -> bool:
    if not isinstance(value, str):
        return False
    try:
        (date if kind == "date" else datetime).fromisoformat(value)
    except ValueError:
        return False
    return True


def _first(found: Any) -> str | None:
    return next((one for one in found if one is not None), None)


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _expected(what: str, value: Any, path: str) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
    return f"{path or 'the value'}: expected {what}, found {shown}"
