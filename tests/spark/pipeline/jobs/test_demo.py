"""What `make demo` runs: it ends with a table and a plot, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet
import pytest

from odradek.spark.pipeline.driver.checkpoint.leftovers import committed_files
from spark.pipeline.terminal import until

DEMO = Path(__file__).resolve().parents[4] / "examples" / "demo" / "demo.py"


def a_demo(directory: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    own = {**os.environ, "TMPDIR": str(directory), **environment}
    return subprocess.Popen(
        [sys.executable, str(DEMO), *arguments],
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(directory: Path) -> list[psutil.Process]:
    """What the demo has started and still runs."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get("TMPDIR") == str(directory) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            pass
    return found


def has_rows(directory: Path, name: str) -> bool:
    """Whether a table of the demo has rows in files that are committed."""
    tables = [one for one in directory.glob(f"odradek-demo-*/{name}") if (one / "_spark_metadata").is_dir()]
    return any(
        pyarrow.parquet.read_metadata(file).num_rows for one in tables for file in committed_files(one)
    )


@pytest.mark.long
def test_ctrl_c_ends_the_demo_with_a_table_and_a_plot_and_nothing_is_left(tmp_path):
    directory, plot = tmp_path / "temporary", tmp_path / "demo.png"
    directory.mkdir()
    demo = a_demo(directory, "--seconds", "600", "--plot", str(plot))
    try:
        until(lambda: has_rows(directory, "sales") and has_rows(directory, "visits"))
        demo.send_signal(signal.SIGINT)
        out, errors = demo.communicate(timeout=120)
        assert demo.returncode == 0, errors
    finally:
        demo.kill()
        demo.communicate()
    assert "orders per 100 clicks" in out
    assert out.splitlines()[-1] == f"The plot is {plot}."
    assert plot.read_bytes().startswith(b"\x89PNG\r\n")
    until(lambda: not processes_of(directory))
    assert not list(directory.glob("odradek-demo-*"))


def test_without_java_the_demo_says_what_to_do(tmp_path):
    demo = a_demo(tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    out, errors = demo.communicate(timeout=60)
    assert (demo.returncode, out) == (1, "")
    assert errors == "Error: Java was not found: install Java 17 (a JRE is enough), or set JAVA_HOME\n"
