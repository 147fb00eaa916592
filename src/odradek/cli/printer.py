"""Buffered lines on standard output: a dump has millions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

_FLUSH_LINES = 512


class Printer:
    """Collects lines and writes them together, always as UTF-8."""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdout.buffer
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        """Add one line to the buffer."""
        self._lines.append(text)
        if len(self._lines) >= _FLUSH_LINES:
            self.flush()

    def json_line(self, fields: Mapping[str, Any]) -> None:
        """Print one object in one line."""
        self.line(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))

    def flush(self) -> None:
        """Write the buffered lines."""
        if self._lines:
            self._stream.write(("\n".join(self._lines) + "\n").encode("utf-8", "replace"))
            self._lines = []
        self._stream.flush()
