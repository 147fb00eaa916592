"""Fuzzes guided by coverage (atheris) for a given time: `run.py --target protocol --minutes 60`.

The interpreted twins are instrumented and lead the search; the compiled ones run beside them on every input
and must give the same result. An input is two bytes that choose the decoder, then the bytes to decode. The
corpus is kept in build/fuzz/<target>, so that the next run goes on from there.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path
from random import Random

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
SEEDS_PER_CHOICE = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=["protocol", "records"], required=True)
    parser.add_argument("--minutes", type=float, default=60)
    arguments = parser.parse_args()

    with atheris.instrument_imports(include=["odradek"]):
        target = importlib.import_module(f"fuzz.{arguments.target}_target")

    # A twin that was loaded under another name has escaped the import hook.
    for module in getattr(target, "INSTRUMENTED", ()):
        for name, function in vars(module).items():
            if inspect.isfunction(function):
                setattr(module, name, atheris.instrument_func(function))

    def one_input(encoded: bytes) -> None:
        if len(encoded) >= 2:
            target.check(int.from_bytes(encoded[:2], "big"), encoded[2:])

    corpus = ROOT / "build/fuzz" / arguments.target
    corpus.mkdir(parents=True, exist_ok=True)
    random = Random(0)
    for choice in range(target.CHOICES):
        for number in range(SEEDS_PER_CHOICE):
            seed = choice.to_bytes(2, "big") + target.seed(choice, random)
            (corpus / f"seed-{choice}-{number}").write_bytes(seed)

    options = [
        f"-max_total_time={int(arguments.minutes * 60)}",
        "-max_len=4096",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus.parent}/{arguments.target}-failure-",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
