"""The command tree, and the conversion of errors to messages and exit codes.

    exit code   meaning
    0           done, nothing wrong
    1           problems were found, or the operation failed
    2           the command is invalid, or a file does not exist

A user error never prints a traceback; a traceback is a bug in odradek.
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
    "topics": Command("odradek.cli.topics", "Create, list, describe, alter and delete topics."),
    "produce": Command("odradek.cli.produce.produce", "Send lines or files to a topic."),
    "consume": Command("odradek.cli.consume.consume", "Print the records of a topic."),
    "groups": Command("odradek.cli.groups", "Describe groups, reset offsets, delete groups."),
    "configs": Command("odradek.cli.configs", "Show, change and explain settings."),
    "acls": Command("odradek.cli.acls", "Add, list and remove ACLs."),
    "partitions": Command("odradek.cli.partitions", "Move replicas between brokers, and elect leaders."),
    "transactions": Command(
        "odradek.cli.transactions", "List, describe and abort transactions; find hanging ones."
    ),
    "offsets": Command("odradek.cli.offsets", "Look up offsets, and delete the records before an offset."),
    "cluster": Command(
        "odradek.cli.cluster", "Show the brokers, log directories and API versions of a cluster."
    ),
    "doctor": Command("odradek.cli.doctor.command", "Explain what is wrong, and what to do."),
    "zookeeper": Command("odradek.cli.zookeeper", "Run one ZooKeeper server for development."),
    "log": Command("odradek.cli.log", "Dump, verify, repair and fork log directories. No broker is needed."),
    "pipeline": Command("odradek.cli.pipeline", "Turn topics into tables and other topics on Spark."),
    "bench": Command("odradek.cli.bench", "Measure a cluster with odradek's clients."),
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
        # The reader of the pipe has exited (`| head`); discard what is buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        fail(f"{where}{error.strerror or error}", 2 if isinstance(error, _USER_ERRORS) else 1)


def fail(sentence: str, exit_code: int) -> None:
    """Print the error and exit."""
    click.echo(f"Error: {sentence}", err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
