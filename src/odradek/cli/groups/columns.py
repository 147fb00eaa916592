"""Lines in columns as wide as those of kafka-consumer-groups.sh, so that scripts can parse them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class GroupColumn(NamedTuple):
    """One column: its title, its key in a row, its least width, and whether long values widen it.

    A width of 0 pads nothing: the last column of some tables. `margin` is added to the longest value.
    """

    title: str
    key: str
    width: int = 15
    grows: bool = False
    margin: int = 0


class GroupTable(NamedTuple):
    """Output of a command: title, rows for tables and JSON, text lines."""

    title: str
    rows: list[dict[str, Any]]
    lines: list[str]


def column_lines(columns: Sequence[GroupColumn], rows: Iterable[dict[str, Any]]) -> list[str]:
    """An empty line, the titles, and a line for each row."""
    cells = [[_cell(row[column.key]) for column in columns] for row in rows]
    widths = [
        column.margin + max([column.width, *(len(line[index]) for line in cells if column.grows)])
        for index, column in enumerate(columns)
    ]
    titles = [column.title for column in columns]
    return ["", *(_line(line, widths) for line in [titles, *cells])]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)
