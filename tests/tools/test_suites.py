from __future__ import annotations

import re
import tomllib
from itertools import combinations
from pathlib import Path

from _pytest.mark.expression import Expression

ROOT = Path(__file__).resolve().parents[2]
CI_LIMIT_SECONDS = 2400
SETUP_SECONDS = 150
CHECK_LIMIT_SECONDS = 270


def suites() -> list[dict]:
    return tomllib.loads((ROOT / "tools/suites.toml").read_text())["suite"]


def test_all_budgets_together_leave_room_for_the_set_up():
    assert sum(suite["budget_seconds"] for suite in suites()) + SETUP_SECONDS <= CI_LIMIT_SECONDS


def markers() -> list[str]:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    return [marker.partition(":")[0] for marker in options["markers"]]


def is_selected(command: str, marks: set[str]) -> bool:
    """Whether a command runs tests with exactly these markers; only .venv-spark collects those of Spark."""
    return any(
        ("spark" not in marks or ".venv-spark" in part or "$(SPARK_VENV)" in part)
        and Expression.compile(expression).evaluate(lambda name, **_: name in marks)
        for part in re.split("&&|\n", command)
        for expression in re.findall(r"pytest.* -m '?([a-z ]+?)(?:'| -|\s*$)", part)
    )


def every_set_of_markers() -> list[set[str]]:
    known = markers()
    return [set(chosen) for count in range(len(known) + 1) for chosen in combinations(known, count)]


def test_every_test_is_run_by_some_suite_whatever_its_markers_and_long_ones_by_make_long():
    makefile = (ROOT / "Makefile").read_text()
    long_target = re.search(r"^long:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert long_target is not None
    for marks in every_set_of_markers():
        runners = [suite["name"] for suite in suites() if is_selected(suite["command"], marks)]
        if "long" in marks:
            assert runners == [], marks
            assert is_selected(long_target[1], marks), marks
        else:
            assert runners, marks


def test_a_command_runs_what_its_expression_selects():
    assert is_selected("setup > x && pytest -q -m 'java and not long'", {"java", "slow"})
    assert not is_selected("pytest -q -m 'java and not long'", {"java", "long"})
    assert not is_selected("pytest -q -m 'java and not long'", {"java", "spark"})
    assert is_selected(".venv-spark/bin/python -m pytest -q --timeout 300 -m 'spark' tests", {"spark"})
    assert is_selected("\t$(BIN)/pytest -q -m long --timeout 900\n", {"long"})
    assert not is_selected("pytest -q --timeout 100 -m fuzz", {"java"})


def test_the_last_output_of_a_failed_suite_is_repeated_at_the_end(monkeypatch, capfd):
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
