"""Declare a setting once: key, type, default, doc, what is valid, and whether it may change while running.

A package keeps its settings in a frozen dataclass whose fields are made by `setting(...)`. Help, documents
and DescribeConfigs are generated from `settings_of`; `from_properties` makes such an object from a properties
file. Invalid values are rejected with Kafka's messages, because clients see them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, TypeVar

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


class UpdateMode(StrEnum):
    """Whether a broker's setting may change while it runs, for one broker or for the cluster."""

    READ_ONLY = "read-only"
    CLUSTER_WIDE = "cluster-wide"


class Importance(StrEnum):
    """How likely somebody needs to know the setting."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class InvalidValue(ConfigError):
    """A value that a setting cannot have: its key, the value as it may be shown, and what is wrong."""

    def __init__(self, key: str, shown: str, problem: str) -> None:
        self.key = key
        self.shown = shown
        self.problem = problem
        super().__init__(f"Invalid value {shown} for configuration {key}: {problem}")


HIDDEN = "[hidden]"
_BOOLEANS = {"true": True, "false": False}
_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
# Python's own parsers would take 1_000, nan and inf as well.
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class Valid(NamedTuple):
    """A condition for values: a predicate, its description, and the error message.

    `each` checks the elements of a list one by one, so that the message names the wrong one.
    """

    accepts: Callable[[Any], bool]
    description: str
    error_message: Callable[[Any], str] | None = None
    each: Valid | None = None

    def problem(self, value: Any) -> str:
        """What is wrong with a value that is not accepted."""
        return (
            self.error_message(value)
            if self.error_message is not None
            else f"Value must be {self.description}"
        )


ANYTHING = Valid(lambda _: True, "")


def at_least(lowest: float) -> Valid:
    """A number with a lower bound."""
    return Valid(
        lambda value: bool(value >= lowest),
        f"[{lowest},...]",
        lambda _: f"Value must be at least {lowest}",
    )


def between(lowest: float, highest: float) -> Valid:
    """A number with both bounds, each included."""
    return Valid(
        lambda value: bool(lowest <= value <= highest),
        f"[{lowest},...,{highest}]",
        lambda value: (
            f"Value must be at least {lowest}" if value < lowest else f"Value must be no more than {highest}"
        ),
    )


def one_of(*choices: str) -> Valid:
    """One word out of a few."""
    words = ", ".join(choices)
    return Valid(lambda value: value in choices, f"[{words}]", lambda _: f"String must be one of: {words}")


def each_of(*choices: str) -> Valid:
    """A list that only has these words in it."""
    return Valid(lambda _: True, f"[{', '.join(choices)}]", each=one_of(*choices))


class Setting(NamedTuple):
    """One key as users write it."""

    key: str
    kind: Kind
    default: Value
    doc: str
    valid: Valid = ANYTHING
    update_mode: UpdateMode = UpdateMode.CLUSTER_WIDE
    is_internal: bool = False
    importance: Importance = Importance.MEDIUM

    @property
    def is_dynamic(self) -> bool:
        """Whether it may change while the broker runs."""
        return self.update_mode is not UpdateMode.READ_ONLY

    @property
    def is_sensitive(self) -> bool:
        """Whether its value must never be shown or logged."""
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> Value:
        """The value that `text` means; InvalidValue when it means none."""
        try:
            value = _parse(self.kind, text.strip())
        except ValueError as refused:
            raise self._invalid(text, str(refused)) from None
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        """InvalidValue when the value is out of bounds; None passes where it is the default."""
        if value is None:
            if self.default is not None:
                raise self._invalid("null", "entry must be non null")
            return
        if not self.valid.accepts(value):
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else self.print(value)
            raise self._invalid(shown, self.valid.problem(value))
        if self.valid.each is not None and isinstance(value, tuple):
            for element in value:
                if not self.valid.each.accepts(element):
                    raise self._invalid(element, self.valid.each.problem(element))

    def print(self, value: Value) -> str | None:
        """The text that `parse` would read back, as Java writes it."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return _print_double(value) if isinstance(value, float) else str(value)

    def _invalid(self, shown: str | None, problem: str) -> InvalidValue:
        return InvalidValue(self.key, HIDDEN if self.is_sensitive else str(shown), problem)


def _parse(kind: Kind, text: str) -> Value:
    if kind is Kind.BOOLEAN:
        if text.lower() not in _BOOLEANS:
            raise ValueError("Expected value to be either true or false")
        return _BOOLEANS[text.lower()]
    if kind is Kind.LIST:
        return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if kind is Kind.DOUBLE and _DECIMAL.fullmatch(text):
        return float(text)
    if kind in _BITS and _INTEGER.fullmatch(text):
        number, limit = int(text), 1 << (_BITS[kind] - 1)
        if -limit <= number < limit:
            return number
    if kind is Kind.DOUBLE or kind in _BITS:
        raise ValueError(f"Not a number of type {kind.name}")
    return text


def _print_double(value: float) -> str:
    """Java writes 1.0E7 and 1.0E-4 where Python still writes all the zeros."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    from decimal import Decimal  # noqa: PLC0415  # for the few numbers of this kind

    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def setting(
    key: str,
    kind: Kind,
    default: Value,
    doc: str,
    valid: Valid = ANYTHING,
    *,
    is_dynamic: bool = True,
    is_internal: bool = False,
    update_mode: UpdateMode = UpdateMode.CLUSTER_WIDE,
    importance: Importance = Importance.MEDIUM,
) -> Any:
    """A dataclass field with the setting's declaration in its metadata."""
    update_mode = update_mode if is_dynamic else UpdateMode.READ_ONLY
    declared = Setting(key, kind, default, doc, valid, update_mode, is_internal, importance)
    return dataclasses.field(default=default, metadata={"setting": declared})


def settings_of(configuration: type[Any]) -> dict[str, Setting]:
    """Every setting of a configuration class by key, in the order of declaration."""
    fields = dataclasses.fields(configuration)
    declared = (field.metadata["setting"] for field in fields if "setting" in field.metadata)
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
