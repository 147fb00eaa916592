from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from log.given_directories import a_log_directory, open_manager
from log.given_logs import NOW_MS
from odradek.cli.main import odradek
from odradek.log.errors import DirectoryLocked


def repair(*arguments: str | Path, answer: str | None = None) -> Result:
    return CliRunner().invoke(odradek, ["log", "repair", *map(str, arguments)], input=answer)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return a_log_directory(tmp_path / "data", batches=20)


@pytest.fixture
def damaged(directory: Path) -> Path:
    partition = directory / "orders-0"
    log = sorted(partition.glob("*.log"))[1]
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    return partition


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_healthy_partition_is_left_alone(directory: Path) -> None:
    before = contents(directory / "orders-0")
    result = repair(directory / "orders-0")
    assert result.exit_code == 0
    assert "nothing to repair" in result.stdout
    assert contents(directory / "orders-0") == before


def test_nothing_is_done_without_a_yes(damaged: Path) -> None:
    before = contents(damaged)
    for answer in ("n\n", "", None):
        result = repair(damaged, answer=answer)
        assert result.exit_code == 1
        assert contents(damaged) == before


@pytest.mark.parametrize(("arguments", "answer"), [(["--yes"], None), ([], "y\n")])
def test_after_a_yes_the_log_is_cut_and_the_rest_kept(
    damaged: Path, arguments: list[str], answer: str | None
) -> None:
    result = repair(*arguments, damaged, answer=answer)
    assert result.exit_code == 0
    assert "set aside" in result.stdout
    kept = sorted(str(path) for path in damaged.glob("*.cut"))
    assert sorted(line[6:] for line in result.stdout.splitlines() if line.startswith("kept: ")) == kept
    assert CliRunner().invoke(odradek, ["log", "verify", str(damaged)]).exit_code == 0


def test_a_directory_in_use_is_refused(damaged: Path) -> None:
    manager = open_manager(damaged.parent)
    before = contents(damaged)
    result = repair("--yes", damaged)
    assert isinstance(result.exception, DirectoryLocked)
    assert "in use by another process" in str(result.exception)
    assert contents(damaged) == before
    manager.stop(NOW_MS)


def test_a_whole_log_directory_is_too_much_at_once(directory: Path) -> None:
    result = repair(directory)
    assert result.exit_code == 2
    assert "one at a time" in result.stderr
