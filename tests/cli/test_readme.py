"""Every shell command of the README runs as printed, in order, against a broker on a free port.

The broker and the virtual environment are those of the test; the port comes from ODRADEK_BOOTSTRAP, because
the printed one may be in use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.testing import Cluster

ROOT = Path(__file__).resolve().parents[2]
# What the test sets up itself.
SET_UP = ("make run", ". .venv/bin/activate")


def commands() -> list[str]:
    """The lines after a prompt; the ones that set up are left out."""
    lines = [line[2:] for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(SET_UP)]


def test_the_tour_activates_the_environment_before_the_first_command() -> None:
    text = (ROOT / "README.md").read_text()

    assert "$ make run" in text
    assert text.index("$ . .venv/bin/activate") < text.index(" odradek ")


@pytest.mark.slow
def test_every_command_runs_as_printed(tmp_path: Path) -> None:
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
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            if command.startswith("odradek consume orders -e -f"):
                assert done.stdout == "0 0 customer-1=tea\n"
