"""Spark's types as text (`id bigint NOT NULL, lines array<struct<sku: string>>`), parsed without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIMPLE = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
    "timestamp", "timestamp_ntz",
)  # fmt: skip
_OTHER_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float",
                "dec": "decimal", "numeric": "decimal", "bytes": "binary", "str": "string", "bool": "boolean",
                "text": "string"}  # fmt: skip
_TOKEN = re.compile(r"\s*(`[^`]+`|\w+|[<>(),:])")
_MOST_DEEP = 40
_SCHEMA = "a text such as `id bigint, at timestamp`, or names with types"


class WrongType(ValueError):
    """A type or a list of fields that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its name, its type in Spark's spelling, and whether it may be null."""

    name: str
    type: str
    nullable: bool = True

    def ddl(self) -> str:
        """As Spark reads it."""
        return f"`{self.name}` {self.type}{'' if self.nullable else ' NOT NULL'}"


def quoted(name: str) -> str:
    """A name inside a struct, in backquotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


def ddl(fields: Iterable[Field]) -> str:
    """All fields as one text for Spark."""
    return ", ".join(field.ddl() for field in fields)


def fields_of(given: str | Mapping[str, str] | Iterable[Field]) -> tuple[Field, ...]:
    """Fields from a text, a mapping of names to types, or fields; WrongType says what is wrong."""
    if isinstance(given, str):
        fields = _Parser(given).fields()
    elif isinstance(given, Mapping):
        fields = tuple(_field_of(name, text) for name, text in given.items())
    elif isinstance(given, Iterable):
        fields = tuple(given)
    else:
        raise WrongType(f"a schema is {_SCHEMA}, not {given!r}")
    if any(not isinstance(one, Field) for one in fields):
        raise WrongType(f"a schema is {_SCHEMA}, not a list")
    if not fields:
        raise WrongType("a schema needs at least one field, such as `order_id bigint`")
    seen: set[str] = set()
    for one in fields:
        if not one.name or "`" in one.name:
            raise WrongType(f"{one.name!r} cannot be the name of a field")
        if one.name.lower() in seen:
            raise WrongType(f"the field {one.name} is there twice")
        seen.add(one.name.lower())
    return fields


def _field_of(name: str, text: object) -> Field:
    if not isinstance(text, str):
        raise WrongType(f"the type of {name} must be a text such as `bigint`")
    parser = _Parser(text)
    type_name = parser.type()
    nullable = parser.nullable()
    parser.end()
    return Field(str(name), type_name, nullable)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise WrongType(f"cannot read {text[place:].strip()[:20]!r} in {text!r}")
            self.tokens.append(found.group(1))
            place = found.end()
        self.next = 0
        self.depth = 0

    def fields(self) -> tuple[Field, ...]:
        """The whole text as fields."""
        found = self._field_list("")
        self.end()
        return found

    def _field_list(self, closing: str) -> tuple[Field, ...]:
        found: list[Field] = []
        while self.next < len(self.tokens) and self._peek() != closing:
            name = self._take().strip("`")
            if self._peek() == ":":
                self._take()
            type_name = self.type()
            found.append(Field(name, type_name, self.nullable()))
            if self._peek() != ",":
                break
            self._take()
        return tuple(found)

    def type(self) -> str:
        """One type."""
        name = self._take().lower()
        name = _OTHER_NAMES.get(name, name)
        self.depth += 1
        if self.depth > _MOST_DEEP:
            raise WrongType("types are nested too deeply")
        try:
            return self._type_named(name)
        finally:
            self.depth -= 1

    def _type_named(self, name: str) -> str:
        if name in SIMPLE:
            return name
        if name == "decimal":
            return self._decimal()
        if name == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return f"array<{element}>"
        if name == "map":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return f"map<{key},{value}>"
        if name == "struct":
            self._expect("<")
            inner = self._field_list(">")
            self._expect(">")
            texts = [f"{quoted(one.name)}: {one.type}{'' if one.nullable else ' NOT NULL'}" for one in inner]
            return f"struct<{', '.join(texts)}>"
        raise WrongType(f"unknown type {name!r}; known are {', '.join(SIMPLE)}, decimal, array, map, struct")

    def _decimal(self) -> str:
        if self._peek() != "(":
            return "decimal(10,0)"
        self._take()
        precision = self._number()
        scale = 0
        if self._peek() == ",":
            self._take()
            scale = self._number()
        self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise WrongType(f"decimal({precision},{scale}): the precision is 1 to 38, the scale at most that")
        return f"decimal({precision},{scale})"

    def nullable(self) -> bool:
        """Whether no NOT NULL follows."""
        if self._peek().lower() != "not":
            return True
        self._take()
        if self._take().lower() != "null":
            raise WrongType(f"NOT must be followed by NULL in {self.text!r}")
        return False

    def end(self) -> None:
        """WrongType unless everything was read."""
        if self.next < len(self.tokens):
            raise WrongType(f"unexpected {self._peek()!r} in {self.text!r}; fields are separated by commas")

    def _number(self) -> int:
        token = self._take()
        if not token.isdigit():
            raise WrongType(f"{token!r} is not a number in {self.text!r}")
        return int(token)

    def _peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def _take(self) -> str:
        if self.next >= len(self.tokens):
            raise WrongType(f"{self.text!r} ends too early; write `name type, name type`")
        self.next += 1
        return self.tokens[self.next - 1]

    def _expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise WrongType(f"{token!r} is missing before {found!r} in {self.text!r}")
