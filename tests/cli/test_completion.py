from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "odradek.cli.main"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_calls_us(cli, shell):
    script = cli.run("completion", shell).stdout
    assert "odradek" in script
    assert f"_ODRADEK_COMPLETE={shell}_complete" in script


def completions(words: str, bootstrap: str) -> list[str]:
    environment = {
        **os.environ,
        "_ODRADEK_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "ODRADEK_BOOTSTRAP": bootstrap,
    }
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.splitlines() if line]


def test_topics_are_completed(cli, topic, make_topic):
    make_topic()
    assert completions(f"odradek topics describe {topic[:-3]}", cli.bootstrap) == [topic]


@pytest.mark.parametrize("words", ["groups describe", "groups delete", "consume t --group"])
def test_groups_are_completed(cli, topic, make_topic, words):
    make_topic()
    group = f"group-for-{words.replace(' ', '-')}"
    cli.run("groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute")
    assert completions(f"odradek {words} {group[:-3]}", cli.bootstrap) == [group]


def test_without_a_cluster_nothing_is_completed_and_nothing_said():
    assert completions("odradek topics describe o", "127.0.0.1:1") == []
