"""Reads a node's JSON: a field has the requested type, or the payload is damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from odradek.coordination.errors import DamagedPayload

T = TypeVar("T")


def encode(fields: dict[str, Any]) -> bytes:
    """As Kafka writes it: no blanks, fields in the given order, UTF-8."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode(kind: str, payload: bytes) -> Fields:
    """The object in a payload; `kind` names the payload in errors."""
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise DamagedPayload(kind, f"not JSON ({error})") from error
    return Fields(kind, content)


class Fields:
    """A JSON object of a node. The getters raise `DamagedPayload`, or return the default if one is given."""

    def __init__(self, kind: str, content: object) -> None:
        self.kind = kind
        if not isinstance(content, dict):
            raise DamagedPayload(kind, f"{type(content).__name__} instead of an object")
        self._content: dict[str, Any] = content

    def __contains__(self, name: str) -> bool:
        return self._content.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number, also as a string: Kafka writes both."""
        value = self._value(name, default)
        if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) <= 20:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, value, "a whole number")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return self._text(name, self._value(name, default))

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return self._integers(name, self._value(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._text(name, item) for item in self._list(name))

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(self.kind, item) for item in self._list(name)]

    def nested(self, name: str) -> Fields:
        """An object inside this one."""
        value = self._value(name)
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return Fields(self.kind, value)

    def nested_or_empty(self, name: str) -> Fields:
        """An object inside this one, which older versions do not have."""
        return self.nested(name) if name in self else Fields(self.kind, {})

    def texts_by_name(self) -> dict[str, str]:
        """All fields, each a text."""
        return {name: self.text(name) for name in self._content}

    def integers_by_name(self) -> dict[str, int]:
        """All fields, each a whole number."""
        return {name: self.integer(name) for name in self._content}

    def replicas_by_partition(self) -> dict[int, tuple[int, ...]]:
        """All fields, each named by a partition and holding broker ids."""
        return {self._partition(name): self.integers(name) for name in self._content}

    def check(self, reader: Callable[[], T]) -> T:
        """The result of `reader` for a field; its ValueError means damage."""
        try:
            return reader()
        except ValueError as error:
            raise DamagedPayload(self.kind, str(error)) from error

    def _partition(self, name: str) -> int:
        if not name.isdecimal():
            raise DamagedPayload(self.kind, f"{name!r} is not a partition")
        return int(name)

    def _text(self, name: str, value: object) -> str:
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return value

    def _integers(self, name: str, value: object) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self._wrong(name, value, "a list of whole numbers")
        return tuple(value)

    def _list(self, name: str) -> list[Any]:
        value = self._value(name)
        if not isinstance(value, list):
            raise self._wrong(name, value, "a list")
        return value

    def _value(self, name: str, default: Any = None) -> Any:
        value = self._content.get(name)
        return default if value is None else value

    def _wrong(self, name: str, value: object, wanted: str) -> DamagedPayload:
        return DamagedPayload(self.kind, f"{name} is {value!r:.100}, not {wanted}")
