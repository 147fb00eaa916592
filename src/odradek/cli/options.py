"""Options and arguments that many commands share, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

output_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json prints one object per line.",
)


class UsageProblem(click.ClickException):
    """An invalid command: contradicting flags, a bad value, or a file that does not exist."""

    exit_code = 2


def check_readable(path: str) -> None:
    """UsageProblem unless the path exists and is readable."""
    if not os.path.exists(path):
        raise UsageProblem(f"{path}: no such file or directory")
    if not os.access(path, os.R_OK):
        raise UsageProblem(f"{path}: permission denied")


def check_directory(path: str) -> None:
    """UsageProblem unless the path is a readable directory."""
    check_readable(path)
    if not os.path.isdir(path):
        raise UsageProblem(f"{path}: a file, where a directory is needed")
