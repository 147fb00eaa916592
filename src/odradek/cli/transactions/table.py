"""Lines of columns as kafka-transactions.sh prints them: padded, and a tab after each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table_lines(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """The titles and the rows; None is printed as `None`."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for line in (titles, *cells):
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))
