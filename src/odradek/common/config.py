"""Declare a setting once: key, type, default, doc, what is valid, and whether it may change while running.

A room keeps its settings in a frozen dataclass whose fields are made by `setting(...)`. Help, documents and
DescribeConfigs are printed from `settings_of`; a properties file becomes such an object by `from_properties`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from odradek.common.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...] | None
Configuration = TypeVar("Configuration")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Kind(IntEnum):
    """The type of a setting, numbered as DescribeConfigs numbers it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BOOLEANS = {"true": True, "false": False}
_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


@dataclass(frozen=True, slots=True)
class Valid:
    """What a value must be: a predicate, and its words for people."""

    accepts: Callable[[Any], bool]
    description: str


ANYTHING = Valid(lambda _: True, "")


def at_least(lowest: float) -> Valid:
    """A number with a lower bound."""
    return Valid(lambda value: bool(value >= lowest), f"[{lowest},...]")


def between(lowest: float, highest: float) -> Valid:
    """A number with both bounds, each included."""
    return Valid(lambda value: bool(lowest <= value <= highest), f"[{lowest},...,{highest}]")


def one_of(*choices: str) -> Valid:
    """One word out of a few."""
    return Valid(lambda value: value in choices, f"[{', '.join(choices)}]")


def each_of(*choices: str) -> Valid:
    """A list that only has these words in it, each at most once."""
    return Valid(
        lambda value: set(value) <= set(choices) and len(set(value)) == len(value),
        f"[{', '.join(choices)}]",
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """One key as users write it."""

    key: str
    kind: Kind
    default: Value
    doc: str
    valid: Valid = ANYTHING
    is_dynamic: bool = True
    is_internal: bool = False

    def parse(self, text: str) -> Value:
        """The value that `text` means; ConfigError naming the key when it means none."""
        try:
            value = _parse(self.kind, text.strip())
        except ValueError:
            raise ConfigError(f"{self.key}={text}: not a value of type {self.kind.name.lower()}") from None
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        """ConfigError when the value is out of bounds; None passes where it is the default."""
        if value is None and self.default is None:
            return
        if value is None or not self.valid.accepts(value):
            expected = self.valid.description or self.kind.name.lower()
            raise ConfigError(f"{self.key}={self.print(value)}: must be {expected}")

    def print(self, value: Value) -> str | None:
        """The text that `parse` would read back."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)


def _parse(kind: Kind, text: str) -> Value:
    if kind is Kind.BOOLEAN:
        return _BOOLEANS[text.lower()] if text.lower() in _BOOLEANS else _refuse()
    if kind is Kind.DOUBLE:
        return float(text)
    if kind is Kind.LIST:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind not in _BITS:
        return text
    number = int(text)
    limit = 1 << (_BITS[kind] - 1)
    return number if -limit <= number < limit else _refuse()


def _refuse() -> Value:
    raise ValueError


def setting(
    key: str,
    kind: Kind,
    default: Value,
    doc: str,
    valid: Valid = ANYTHING,
    *,
    is_dynamic: bool = True,
    is_internal: bool = False,
) -> Any:
    """A dataclass field that remembers how users spell and set it."""
    declared = Setting(key, kind, default, doc, valid, is_dynamic, is_internal)
    return dataclasses.field(default=default, metadata={"setting": declared})


def settings_of(configuration: type[Any]) -> dict[str, Setting]:
    """Every setting of a configuration class by key, in the order of declaration."""
    declared = (field.metadata["setting"] for field in dataclasses.fields(configuration))
    return {one.key: one for one in declared}


def from_properties(configuration: type[Configuration], properties: Mapping[str, str]) -> Configuration:
    """A configuration object; ConfigError for a key it does not have or a value that cannot be."""
    values: dict[str, Value] = {}
    for field in dataclasses.fields(configuration):  # type: ignore[arg-type]
        declared: Setting = field.metadata["setting"]
        if declared.key in properties:
            values[field.name] = declared.parse(properties[declared.key])
    unknown = sorted(set(properties) - set(settings_of(configuration)))
    if unknown:
        raise ConfigError(f"unknown setting: {', '.join(unknown)}")
    return configuration(**values)


def to_properties(configuration: Any) -> dict[str, str]:
    """Every key with its value as text; keys without a value are left out."""
    printed = (
        (field.metadata["setting"], getattr(configuration, field.name))
        for field in dataclasses.fields(configuration)
    )
    return {one.key: text for one, value in printed if (text := one.print(value)) is not None}
