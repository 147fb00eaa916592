"""`odradek configs docs`: every setting with its type, default and meaning. No broker is needed."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING

import click

from odradek.cli.connecting import Failed
from odradek.cli.output import output_option, print_rows

if TYPE_CHECKING:
    from odradek.broker.settings.document import DocumentRow


@click.command("docs")
@click.argument("words", nargs=-1, metavar="[NAME]...")
@click.option("--topics", "only", flag_value="topic", help="Only settings of topics.")
@click.option("--groups", "only", flag_value="group", help="Only settings of groups.")
@click.option("--brokers", "only", flag_value="broker", help="Only settings of brokers.")
@output_option
def command(words: tuple[str, ...], only: str | None, output: str | None) -> None:
    """Explain settings, all or those whose name contains one of the words.

    odradek configs docs retention
    """
    every = [(scope, row) for scope, row in _all_rows() if only in (None, scope)]
    found = [(scope, row) for scope, row in every if not words or any(word in row.name for word in words)]
    if not found:
        near = difflib.get_close_matches(words[0], [row.name for _, row in every], n=3, cutoff=0.5)
        raise Failed(
            f"no setting has {' or '.join(words)} in its name"
            + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    rows = [{"scope": scope, **row._asdict()} for scope, row in found]
    print_rows(output, rows, [_lines(scope, row) for scope, row in found], title="settings")


def _all_rows() -> list[tuple[str, DocumentRow]]:
    from odradek.broker.settings import catalog  # noqa: PLC0415
    from odradek.broker.settings.document import (  # noqa: PLC0415
        broker_rows,
        document_rows,
        group_rows,
        topic_rows,
    )

    brokers = [row for theme in catalog.THEMES for row in broker_rows(theme)]
    brokers += document_rows(catalog.DYNAMIC_ONLY.values())
    pairs = [("topic", row) for row in topic_rows()] + [("group", row) for row in group_rows()]
    return pairs + [("broker", row) for row in sorted(brokers)]


def _lines(scope: str, row: DocumentRow) -> str:
    facts = [f"{scope} setting", row.type, f"default {row.default}"]
    if row.valid:
        facts.append(f"valid {row.valid}")
    if scope == "broker":
        facts.append(row.update_mode)
    doc = textwrap.indent(textwrap.fill(row.doc, 96), "    ")
    return f"{row.name}\n    {', '.join(facts)}\n{doc}"
