"""Runs every benchmark, one after another; each also runs alone.

A folder with a `run.py` is run by it: its scripts share brokers and results.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(folders: list[str]) -> int:
    """Run the scripts of the named directories (default: all); a benchmark that fails fails the run."""
    found = [path for path in HERE.glob("*/*.py") if not folders or path.parent.name in folders]
    whole = {path.parent for path in found if path.name == "run.py"}
    scripts = sorted(path for path in found if path.name == "run.py" or path.parent not in whole)
    failed = [
        script for script in scripts if subprocess.run([sys.executable, script], check=False).returncode
    ]
    for script in failed:
        print(f"failed: {script.relative_to(HERE)}", file=sys.stderr)
    return 1 if failed or not scripts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
