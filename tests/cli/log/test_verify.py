from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from log.given_directories import a_log_directory
from odradek.cli.main import odradek


def verify(*arguments: str | Path) -> Result:
    return CliRunner().invoke(odradek, ["log", "verify", *map(str, arguments)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return a_log_directory(tmp_path / "data", batches=6)


def damage(directory: Path) -> Path:
    log = directory / "orders-1" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    return log


def test_a_healthy_directory_ends_with_0_and_a_summary(directory: Path) -> None:
    result = verify(directory)
    assert result.exit_code == 0
    assert result.stdout == "2 partitions, 28 batches, no problems\n"


def test_damage_ends_with_1_and_says_file_byte_problem_and_what_to_do(directory: Path) -> None:
    log = damage(directory)
    result = verify(directory)
    assert result.exit_code == 1
    problem, advice, summary = result.stdout.splitlines()
    assert problem.startswith(f"{log}: byte 0: batch at offset 0: the batch does not have the CRC")
    assert f"odradek log repair {log.parent}" in advice
    assert summary.endswith("1 problems")


def test_several_paths_are_one_verdict(directory: Path) -> None:
    damage(directory)
    assert verify(directory / "orders-0").exit_code == 0
    assert verify(directory / "orders-0", directory / "orders-1").exit_code == 1


def test_json_has_one_object_per_problem_and_a_summary(directory: Path) -> None:
    log = damage(directory)
    problem, summary = map(json.loads, verify("-o", "json", directory).stdout.splitlines())
    assert (problem["kind"], problem["file"], problem["position"]) == ("problem", str(log), 0)
    assert summary == {"kind": "summary", "partitions": 2, "batches": 28, "problems": 1}


def test_a_file_or_a_directory_without_a_log_is_a_mistake(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, words in (
        (damage(directory), "a directory is needed"),
        (tmp_path / "empty", "neither a partition"),
        (tmp_path / "gone", "no such file"),
    ):
        result = verify(path)
        assert (result.exit_code, words in result.stderr) == (2, True)
