"""Every shell command and Python example of the README runs as printed, in order, on a free port.

The broker and the virtual environment are those of the test; the port comes from ODRADEK_BOOTSTRAP, because
the printed one may be in use. In the Python examples the address is replaced.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.testing import Cluster

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# What the test sets up itself, and what needs Spark: tests/spark/pipeline/driver/test_run.py runs a pipeline.
NOT_HERE = ("make run", ". .venv/bin/activate", "odradek pipeline run", "make demo")
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """The lines after a prompt that run here."""
    lines = [line[2:] for line in README.splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(NOT_HERE)]


def test_the_tour_activates_the_environment_before_the_first_command() -> None:
    assert "$ make run" in README
    assert README.index("$ . .venv/bin/activate") < README.index(" odradek ")


def test_every_command_stands_after_a_prompt() -> None:
    assert not re.findall(r"^(?:odradek|python) .*", README, re.MULTILINE)


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/odradek"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m odradek.cli.main "$@"\n')
    script.chmod(0o755)
    assert len(commands()) > 8

    with Cluster(process=True, data_dir=tmp_path / "odradek-data") as cluster:
        environment = {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "ODRADEK_BOOTSTRAP": cluster.bootstrap,
        }
        for command in commands():
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            if command.startswith("odradek consume orders -e -f"):
                assert done.stdout == "0 0 customer-1=tea\n"
        monkeypatch.chdir(tmp_path)
        names: dict[str, Any] = {}
        for example in EXAMPLE.findall(README):
            exec(example.replace("127.0.0.1:9092", cluster.bootstrap), names)
        assert names["table"].num_rows > 0
