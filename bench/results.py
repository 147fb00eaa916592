"""Results as data: kept as small JSON files, printed from there as Markdown tables."""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS, PLOTS = HERE / "results", HERE / "plots"
CACHE = HERE / ".cache"
"""Results of sanity checks, which are not measurements; ignored by git."""
SIGNIFICANT_DIGITS = 4
MB = 1_000_000
GB = 1_000_000_000

BenchResult = dict[str, Any]


def save(path: Path, outcome: BenchResult) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(outcome), indent=1) + "\n")


def load(path: Path) -> BenchResult:
    kept: BenchResult = json.loads(path.read_text())
    return kept


def _rounded(value: Any) -> Any:
    """The same with as many digits as the figures deserve; the file stays small."""
    if isinstance(value, float) and math.isfinite(value) and value:
        return round(value, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(value))))
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def circumstances(packages: Iterable[str]) -> BenchResult:
    """Where, when and with what something was measured."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit.stdout.strip(),
        "cores": len(cpus),
        "cpu": cpus[0].partition(":")[2].strip() if cpus else platform.machine(),
        "python": platform.python_version(),
        "java": java.splitlines()[0] if java else "none",
        **{package: metadata.version(package) for package in packages},
    }


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def verdict(goal: str, reached: bool, seen: str) -> str:
    """One line on a goal, the missed ones as loud as the others."""
    return f"- {'reached' if reached else '**missed**'}: {goal} ({seen})"
