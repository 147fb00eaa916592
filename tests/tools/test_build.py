"""Installing: what is compiled, what `make run` installs, and what happens without a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from odradek.protocol import codec
from odradek.records.kernels import record_check as kernels

ROOT = Path(__file__).resolve().parents[2]
ROUND_TRIPS = """
from odradek.protocol import codec
from odradek.protocol.messages import FetchRequest
from odradek.records.kernels import record_check as kernels
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.record import Record, read_records

assert not codec.is_compiled and not kernels.IS_COMPILED
request = FetchRequest(max_wait_ms=500, cluster_id="c")
assert FetchRequest.decode(request.encode(12), 12)[0] == request
records = [Record(0, 5, b"key", b"value", (("h", None),))]
assert read_records(build_batch(records, codec=Codec.LZ4), max_bytes=1000) == records
print("works")
"""


def run(*command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | settings, cwd=ROOT.anchor
    )


def data_files(directory: Path) -> set[Path]:
    """What is not Python: schemas, tables, types."""
    return {
        path.relative_to(directory)
        for path in directory.rglob("*")
        if path.is_file()
        and path.suffix in {".txt", ".pyi", ".pxd", ".pyx", ".typed"}
        and not path.is_relative_to(directory / "odradek.egg-info")
    }


def copied_source(directory: Path) -> Path:
    """What a wheel is made from, without what was compiled here."""
    source = directory / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    return source


@pytest.mark.slow
def test_a_wheel_has_the_modules_by_which_spark_finds_the_data_sources(tmp_path):
    source = copied_source(tmp_path)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    built = run(*pip, "-w", str(tmp_path), str(source), ODRADEK_PURE_PYTHON="1")
    assert built.returncode == 0, built.stderr

    (wheel,) = tmp_path.glob("odradek-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"pyspark_odradek/__init__.py", "pyspark_odradek_segments/__init__.py"} <= names


@pytest.mark.slow
def test_without_a_c_compiler_it_installs_and_works_with_one_warning(tmp_path):
    source, site = copied_source(tmp_path), tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target")
    installed = run(*pip, str(site), str(source), CC="false")
    assert installed.returncode == 0, installed.stderr
    assert list(site.rglob("*.so")) == []
    assert data_files(source / "src") <= data_files(site)

    used = run(sys.executable, "-W", "default", "-c", ROUND_TRIPS, PYTHONPATH=str(site))
    assert (used.returncode, used.stdout) == (0, "works\n"), used.stderr
    assert used.stderr.count("odradek runs interpreted") == 1


def test_this_environment_tests_what_is_shipped_compiled():
    assert codec.is_compiled
    assert kernels.IS_COMPILED


@pytest.mark.slow
def test_compiling_shows_its_progress_and_removes_what_is_no_longer_listed(tmp_path):
    for name in ("setup.py", "pyproject.toml", "src/odradek/common/clock.py", "src/odradek/common/clock.pxd"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for declarations in (ROOT / "src/odradek/common").glob("*.pxd"):
        shutil.copy(declarations, tmp_path / "src/odradek/common")
    for package in ("odradek", "odradek/common"):
        (tmp_path / "src" / package / "__init__.py").touch()
    stale = tmp_path / "src/odradek/common/removed.cpython-311-x86_64-linux-gnu.so"
    stale.touch()

    built = subprocess.run(
        [sys.executable, "-u", "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Cythonizing src/odradek/common/clock.py" in built.stdout
    assert "[1/1] compiling odradek.common.clock" in built.stdout
    assert [path.name.partition(".")[0] for path in (tmp_path / "src").rglob("*.so")] == ["clock"]


@pytest.mark.parametrize(("target", "installs_tools"), [("run", False), ("check", True)])
def test_only_developers_get_developer_tools(tmp_path, target, installs_tools):
    commands = run("make", "-n", "-C", str(ROOT), target, f"VENV={tmp_path}/new")
    assert commands.returncode == 0, commands.stderr
    assert "build_ext" in commands.stdout
    assert (".[dev]" in commands.stdout) is installs_tools
