"""Prints the rows of a dump: as the lines of Kafka's DumpLogSegments, or as JSON objects with the same names.

Most of Kafka's lines are names and values in a row, `offset: 7 position: 4096`, so one mapping serves both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odradek.cli.printer import Printer

_OPTIONALS = frozenset({"deleteHorizonMs", "currentTxnFirstOffset"})


class TextOutput:
    """The exact lines of DumpLogSegments."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer

    def file(self, path: str) -> None:
        """What follows is about this file."""
        self.printer.line(f"Dumping {path}")

    def row(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Names and values; the records of a batch are indented."""
        # A dump has millions of lines, and most values are plain integers.
        line = " ".join(
            [
                f"{name}: {value if type(value) is int and name not in _OPTIONALS else _text(name, value)}"
                for name, value in fields.items()
            ]
        )
        if kind == "record":
            line = f"| {line}" if line else ""
        self.printer.line(line)

    def sentence(self, sentence: str, kind: str, fields: Mapping[str, Any]) -> None:
        """A line in another format."""
        self.printer.line(sentence)


class JsonOutput:
    """One object per line, each with its file and the kind of row."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self._path = ""

    def file(self, path: str) -> None:
        """What follows is about this file."""
        self._path = path

    def row(self, kind: str, fields: Mapping[str, Any]) -> None:
        """The fields, with the names of the text output."""
        self.printer.json_line({"file": self._path, "kind": kind, **fields})

    def sentence(self, sentence: str, kind: str, fields: Mapping[str, Any]) -> None:
        """The fields of a sentence."""
        self.row(kind, fields)


DumpOutput = TextOutput | JsonOutput


def _text(name: str, value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    if name in _OPTIONALS:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, list):
        return f"[{','.join(value)}]"
    return str(value)
