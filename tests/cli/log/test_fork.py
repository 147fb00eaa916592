from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from log.given_directories import a_log_directory
from odradek.cli.main import odradek


def fork(*arguments: str | Path) -> Result:
    return CliRunner().invoke(odradek, ["log", "fork", *map(str, arguments)])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_log_directory(tmp_path / "source")


def test_a_fork_says_what_it_cost(source: Path, tmp_path: Path) -> None:
    result = fork(source, tmp_path / "fork")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 partitions in ")
    assert CliRunner().invoke(odradek, ["log", "verify", str(tmp_path / "fork")]).exit_code == 0


def test_json_says_the_same(source: Path, tmp_path: Path) -> None:
    fields = json.loads(fork("-o", "json", source, tmp_path / "fork").stdout)
    linked = sum(path.stat().st_nlink > 1 for path in (tmp_path / "fork").rglob("*.log"))
    assert (fields["partitions"], fields["linkedFiles"]) == (2, linked)


def test_mistakes_are_explained(source: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        ([tmp_path / "gone", tmp_path / "fork"], "no such file"),
        ([tmp_path / "empty", tmp_path / "fork"], "neither a partition"),
        ([source, source], "something already"),
        ([source, source / "inside"], "lies inside"),
        ([source / "meta.properties", tmp_path / "fork"], "a directory is needed"),
    ):
        result = fork(*arguments)
        assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "fork").exists()
