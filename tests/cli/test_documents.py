"""Every command that docs/cli.md shows is one that exists, with flags that exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from odradek.cli.main import odradek

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def shown_commands() -> list[list[str]]:
    lines = [line[2:] for line in PAGE.read_text().splitlines() if line.startswith("$ ")]
    pieces = [piece for line in lines for piece in split_pipes(shlex.split(line))]
    return [piece[1:] for piece in pieces if piece[0] == "odradek"]


def split_pipes(words: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            pieces.append([])
        else:
            pieces[-1].append(word)
    return pieces


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_a_shown_command_is_understood(words):
    command: click.Command = odradek
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None
        command, words = found, words[1:]
    command.make_context(command.name, words)
