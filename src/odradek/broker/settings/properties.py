r"""Files of `key=value` lines in the grammar of Java's Properties, as Kafka's brokers read them.

| text | meaning |
| --- | --- |
| `# ...` or `! ...` | a comment, where it is the first thing in a line |
| `key=value`, `key: value`, `key value` | a property; blanks around the separator go, those at the end stay |
| an odd number of `\` at the end | the next line goes on here, without the blanks it begins with |
| `\t` `\n` `\r` `\f` | the character of that name |
| `\uXXXX` | one UTF-16 unit; two of them make a character beyond the first 65,536 |
| `\` before anything else | that character itself, so that keys can have `=`, `:` and blanks |

Bytes are ISO-8859-1; other characters need `\uXXXX`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from odradek.common.errors import ConfigError

_BLANKS = " \t\f"
_LINE = re.compile(r"\r\n|\r|\n")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)


class Property(NamedTuple):
    """One pair, and the number of the line it begins in."""

    key: str
    value: str
    line: int


def parse_properties(text: str, file_name: str = "properties") -> list[Property]:
    """Every pair in order, duplicates included; raises ConfigError for an invalid escape."""
    found = []
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # the pattern also matches nothing
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        try:
            found.append(Property(_unescape(key[0]), _unescape(line[separator.end() :]), number))
        except ValueError as problem:
            raise ConfigError(f"{file_name}, line {number}: {problem}") from None
    return found


def read_properties(path: str) -> list[Property]:
    """The pairs of a file; ConfigError when it cannot be read."""
    try:
        with open(path, encoding="iso-8859-1", newline="") as file:
            return parse_properties(file.read(), path)
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}") from problem


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank ones, continued ones put together, with the number of the first."""
    pending, start = "", 0
    natural_lines = _LINE.split(text)
    if not natural_lines[-1]:
        natural_lines.pop()  # what is behind the last end of a line is no line
    for number, natural in enumerate(natural_lines, 1):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            start = 0  # after a line of nothing but a backslash too
            continue
        start = start or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2 == 1:
            pending += line[:-1]
            continue
        yield start, pending + line
        pending, start = "", 0
    # As Java: a single backslash before a last "\r\n" is no line, before a last "\n" it is an empty one.
    if start and (pending or not text.endswith("\r\n")):
        yield start, pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(_character, text)
    # A surrogate pair becomes one character; half a pair becomes the replacement character.
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    if escaped == "u":
        raise ValueError(r"\u needs four hexadecimal digits")
    return _ESCAPED.get(escaped, escaped)
