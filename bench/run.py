"""Runs every benchmark, one after another; each also runs alone.

    python bench/run.py [FOLDER ...]

A folder with a `run.py` is run by it, because its scripts share brokers and results; what that leaves out and
runs by itself is in `BESIDE_RUN`. A file without a main part is a module of the others.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

HERE = Path(__file__).resolve().parent
BESIDE_RUN = ("spark/exactly_once.py", "spark/backlog.py", "spark/scaling.py")


def scripts(folders: Collection[str] = ()) -> list[Path]:
    """What is run for the named folders (default: all), in order; paths below bench/."""
    mains = [path for path in HERE.glob("*/*.py") if "__main__" in path.read_text()]
    found = [path.relative_to(HERE) for path in mains if not folders or path.parent.name in folders]
    with_run = {path.parent for path in found if path.name == "run.py"}
    return sorted(
        path
        for path in found
        if path.name == "run.py" or path.parent not in with_run or str(path) in BESIDE_RUN
    )


def main(folders: list[str]) -> int:
    """Run the scripts of the folders; a benchmark that fails fails the run."""
    chosen = scripts(folders)
    failed = [
        script for script in chosen if subprocess.run([sys.executable, HERE / script], check=False).returncode
    ]
    for script in failed:
        print(f"failed: {script}", file=sys.stderr)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
