"""The command tree, and the one place where an error becomes a sentence and an exit code.

    exit code   meaning
    0           done, nothing wrong
    1           done, and problems were found; or the machine failed us
    2           the command was not understood, or names something that is not there

No mistake of a user ends in a traceback; a traceback is a bug of ours.
"""

from __future__ import annotations

import os
import sys

import click

from odradek import __version__
from odradek.cli.lazy import Command, LazyGroup
from odradek.common.errors import OdradekError

COMMANDS = {
    "start": Command("odradek.cli.start", "Start a broker."),
    "topics": Command("odradek.cli.topics", "Make, list, describe, grow and delete topics."),
    "produce": Command("odradek.cli.produce.produce", "Send lines or files to a topic."),
    "consume": Command("odradek.cli.consume.consume", "Print the records of a topic."),
    "groups": Command("odradek.cli.groups", "See who reads what and how far, move offsets, delete groups."),
    "configs": Command("odradek.cli.configs", "Show, change and explain settings."),
    "acls": Command("odradek.cli.acls", "Allow, deny and show who may do what."),
    "offsets": Command("odradek.cli.offsets", "Look offsets up, and delete the records before one."),
    "cluster": Command(
        "odradek.cli.cluster", "See who is in a cluster, and what its brokers serve and keep."
    ),
    "log": Command(
        "odradek.cli.log", "Look at, check, repair and fork log directories. No broker is needed."
    ),
    "bench": Command("odradek.cli.bench", "Measure a cluster with our own clients."),
    "completion": Command("odradek.cli.completion", "Print the completion script of a shell."),
}

EPILOG = """\
Tab completion, for this shell: eval "$(odradek completion bash)"; zsh and fish have theirs.
"""

_USER_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


@click.group(
    cls=LazyGroup, lazy=COMMANDS, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="odradek", message="%(prog)s %(version)s")
def odradek() -> None:
    """Kafka's commit log in Python."""


def main() -> None:
    """The entry point of `odradek`."""
    try:
        odradek(prog_name="odradek")
    except OdradekError as error:
        fail(str(error), 1)
    except BrokenPipeError:
        # Whoever reads us has had enough (`| head`); what is buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        fail(f"{where}{error.strerror or error}", 2 if isinstance(error, _USER_ERRORS) else 1)


def fail(sentence: str, exit_code: int) -> None:
    """Say what is wrong and end."""
    click.echo(f"Error: {sentence}", err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
