"""Commands in this process, against one broker for all tests of the CLI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from client.conftest import QUICK_GROUPS
from odradek.cli.main import odradek
from odradek.testing import Cluster


@pytest.fixture(scope="module")
def cli_cluster() -> Iterator[Cluster]:
    with Cluster({**QUICK_GROUPS, "group.consumer.assignment.interval.ms": 0}) as cluster:
        yield cluster


class Cli:
    """Runs commands and says what they print."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, *arguments: str, typed: str | bytes | None = None, exit_code: int = 0) -> Result:
        result = CliRunner(env={"ODRADEK_BOOTSTRAP": self.bootstrap}).invoke(odradek, arguments, input=typed)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        assert result.exit_code == exit_code, result.output
        return result

    def lines(self, *arguments: str, typed: str | bytes | None = None) -> list[str]:
        return self.run(*arguments, typed=typed).stdout.splitlines()

    def objects(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self.lines(*arguments, "-o", "json")]

    def error(self, *arguments: str, exit_code: int = 1) -> str:
        return self.run(*arguments, exit_code=exit_code).stderr


@pytest.fixture
def cli(cli_cluster: Cluster) -> Cli:
    return Cli(cli_cluster.bootstrap)


@pytest.fixture
def topic(cli: Cli, request: pytest.FixtureRequest) -> str:
    """A name of this test alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]


@pytest.fixture
def make_topic(cli: Cli, topic: str) -> Callable[..., str]:
    """Makes this test's topic."""

    def make(*options: str) -> str:
        cli.run("topics", "create", topic, *options)
        return topic

    return make
