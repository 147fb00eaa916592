"""Groups whose commands are imported when they are called, so that `odradek --help` need not load them."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import click


class Command(NamedTuple):
    """A command not loaded yet: the module that holds it as `command`, and its line of help."""

    module: str
    summary: str


class LazyGroup(click.Group):
    """A group with the names and summaries of its commands; a command is imported when it is called."""

    def __init__(self, *args: Any, lazy: Mapping[str, Command], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        found = self.lazy.get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        command = _import_to_stay(found.module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list under "Commands", from the table alone."""
        rows = [(name, command.get_short_help_str()) for name, command in sorted(self.commands.items())]
        rows += [(name, command.summary) for name, command in self.lazy.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _import_to_stay(module: str) -> ModuleType:
    """Import a module with the garbage collector disabled, and freeze its objects: modules stay loaded."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()
