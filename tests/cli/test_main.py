from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from odradek import __version__
from odradek.cli.main import odradek


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_version_is_reported() -> None:
    assert run("--version").stdout == f"odradek {__version__}\n"


def test_every_command_of_the_tree_has_help() -> None:
    for words in every_command(odradek):
        result = CliRunner().invoke(odradek, [*words, "--help"])
        assert result.exit_code == 0
        assert result.output.startswith(f"Usage: odradek {' '.join(words)}")


def every_command(group: click.Group, *before: str) -> Iterator[list[str]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield [*before, name]
        if isinstance(command, click.Group):
            yield from every_command(command, *before, name)


def test_help_of_a_group_lists_its_commands_without_loading_them() -> None:
    listed = "import sys; from odradek.cli.main import main; sys.argv = ['odradek', 'log', '--help']\n"
    check = (
        "import atexit; atexit.register(lambda: print(sorted(m for m in sys.modules if 'odradek' in m)))\n"
    )
    command = [sys.executable, "-c", listed + check + "main()"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "verify" in result.stdout
    for heavy in ("odradek.cli.log.dump", "odradek.records", "odradek.protocol", "rich"):
        assert f"'{heavy}'" not in result.stdout


def loaded_by(*arguments: str) -> list[str]:
    script = (
        f"import sys, atexit; from odradek.cli.main import main; sys.argv = ['odradek', *{arguments!r}]\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stderr.split()


def test_start_loads_no_client_and_clients_load_no_broker() -> None:
    assert not [name for name in loaded_by("start", "--help") if name.startswith(("odradek.client", "rich"))]
    for command in (["topics", "list"], ["produce"], ["consume"], ["configs", "describe"]):
        loaded = loaded_by(*command, "--help")
        assert not [name for name in loaded if name.startswith(("odradek.broker", "odradek.log", "rich"))]


def test_help_mentions_tab_completion() -> None:
    assert "odradek completion bash" in run("--help").stdout


def test_tab_completion_knows_the_commands() -> None:
    environment = {"_ODRADEK_COMPLETE": "bash_complete", "COMP_WORDS": "odradek log ", "COMP_CWORD": "2"}
    command = [sys.executable, "-m", "odradek.cli.main"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "plain,dump" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["log", "dmup"], "No such command 'dmup'"),
        (["log", "dump", "--no-such-flag"], "No such option"),
        (["log", "dump"], "nothing to dump"),
        (["log", "dump", "/no/such/file"], "no such file or directory"),
        (["log", "verify"], "Missing argument"),
        (["log", "verify", "/no/such/file"], "no such file or directory"),
        (["log", "repair", "/no/such/file"], "no such file or directory"),
        (["log", "fork", "/no/such/file", "/tmp/x"], "no such file or directory"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
