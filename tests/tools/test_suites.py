from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CI_LIMIT_SECONDS = 2400
SETUP_SECONDS = 150
CHECK_LIMIT_SECONDS = 270


def suites() -> list[dict]:
    return tomllib.loads((ROOT / "tools/suites.toml").read_text())["suite"]


def test_all_budgets_together_leave_room_for_the_set_up():
    assert sum(suite["budget_seconds"] for suite in suites()) + SETUP_SECONDS <= CI_LIMIT_SECONDS


def test_every_marker_of_pytest_is_run_by_some_suite():
    """Or by a command of the Makefile of its own."""
    commands = " ".join(suite["command"] for suite in suites()) + (ROOT / "Makefile").read_text()
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    for marker in markers:
        name = marker.partition(":")[0]
        assert f"-m {name}" in commands or f"-m '{name}" in commands, name


def test_a_failed_suite_has_its_last_words_told_again_at_the_end(monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import run_suites

    quick = [
        run_suites.Suite("red", "echo what went wrong; exit 3", 20, in_check=False),
        run_suites.Suite("green", "echo fine", 20, in_check=False),
        run_suites.Suite("hanging", "echo hanging here; sleep 60", 1, in_check=False),
    ]
    monkeypatch.setattr(run_suites, "load_suites", lambda: quick)
    assert run_suites.main("all") == 1
    before_end, _, end = capfd.readouterr().out.partition("the end of what red said (failed (3))")
    assert "what went wrong" in before_end
    assert "what went wrong" in end
    assert "hanging here" in end
    assert "fine" not in end
    assert "suites: 1 passed, 2 failed" in end


def test_one_suite_can_be_run_by_its_name(monkeypatch, capfd):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import run_suites

    quick = [run_suites.Suite(name, f"echo {name}", 20, in_check=name == "a") for name in ("a", "b")]
    monkeypatch.setattr(run_suites, "load_suites", lambda: quick)
    assert run_suites.main("b") == 0
    assert "1 passed" in capfd.readouterr().out
