from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CI_LIMIT_SECONDS = 1500
SETUP_SECONDS = 120
CHECK_LIMIT_SECONDS = 270


def suites() -> list[dict]:
    return tomllib.loads((ROOT / "tools/suites.toml").read_text())["suite"]


def test_all_budgets_together_leave_room_for_the_set_up():
    assert sum(suite["budget_seconds"] for suite in suites()) + SETUP_SECONDS <= CI_LIMIT_SECONDS


def test_every_marker_of_pytest_is_run_by_some_suite():
    commands = " ".join(suite["command"] for suite in suites())
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    for marker in markers:
        name = marker.partition(":")[0]
        assert f"-m {name}" in commands or f"-m '{name}" in commands, name
