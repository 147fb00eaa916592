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
}

LOG_COMMANDS = {
    "dump": Command("odradek.cli.log.dump", "Print segments and indexes as Kafka's DumpLogSegments does."),
    "verify": Command("odradek.cli.log.verify", "Scan everything and say what is damaged."),
    "repair": Command(
        "odradek.cli.log.repair", "Cut a corrupt partition at its first bad batch; keep the rest."
    ),
    "fork": Command("odradek.cli.log.fork", "Snapshot a log directory by hard links."),
}

EPILOG = """\
Tab completion, for this shell: eval "$(_ODRADEK_COMPLETE=bash_source odradek)"; zsh_source and fish_source
serve the other shells.
"""

_USER_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


@click.group(
    cls=LazyGroup, lazy=COMMANDS, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="odradek", message="%(prog)s %(version)s")
def odradek() -> None:
    """Kafka's commit log in Python."""


odradek.add_command(
    LazyGroup(
        "log",
        lazy=LOG_COMMANDS,
        help="Look at, check, repair and fork log directories, ours or Kafka's. No broker is needed.",
    )
)


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
