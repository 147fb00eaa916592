"""Prints the output of commands as lines, a table or JSON.

text    the lines of Kafka's own tools, where there is such a tool; the default in a pipe
table   the default at a terminal
json    one object per line
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

Row = Mapping[str, Any]

output_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "table", "json"]),
    default=None,
    help="Lines as in Kafka's tools, a table, or an object per line; a table is the default at a terminal.",
)


def print_rows(
    output: str | None,
    rows: Sequence[Row],
    lines: Iterable[str],
    title: str = "",
    objects: Sequence[Row] | None = None,
) -> None:
    """Print rows in the chosen format; `lines` is the text form, `objects` the nested JSON form."""
    chosen = output or ("table" if sys.stdout.isatty() else "text")
    if chosen == "json":
        for row in rows if objects is None else objects:
            click.echo(to_json(row))
    elif chosen == "table":
        _print_table(rows, title)
    else:
        for line in lines:
            click.echo(line)


def print_done(output: str | None, row: Row, sentence: str) -> None:
    """Print the result of a change."""
    click.echo(to_json(row) if output == "json" else sentence)


def to_json(row: Any) -> str:
    """One object in one line."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str)


def _print_table(rows: Sequence[Row], title: str) -> None:
    # Importing rich takes as long as importing the rest.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    if not rows:
        click.echo(f"no {title}" if title else "nothing")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        is_number = isinstance(rows[0][column], int) and not isinstance(rows[0][column], bool)
        table.add_column(column.replace("_", " "), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    Console(highlight=False, markup=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ",".join(str(one) for one in value)
    return str(value)
