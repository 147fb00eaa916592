"""The compiled modules and their interpreted twins behind one fixture: every kernel test runs over both."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from odradek.records.kernels import (
    batch_scan,
    column_sinks,
    columns,
    encoding,
    hashes,
    layout,
    record_index,
    record_objects,
)
from odradek.records.kernels import record_check as kernels

SOURCES = Path(layout.__file__).parents[1]


def interpreted(name: str) -> ModuleType:
    """The same source file, run by Python."""
    loader = SourceFileLoader(f"interpreted_{Path(name).name}", str(SOURCES / f"{name}.py"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Kernels:
    """One way of running the compiled modules."""

    def __init__(self, modules: tuple[ModuleType, ...]) -> None:
        for module in modules:
            for name, member in vars(module).items():
                if not name.startswith("__"):
                    setattr(self, name, member)


MODULES = (kernels, record_index, record_objects, batch_scan, encoding, columns, column_sinks, hashes)
COMPILED = Kernels(MODULES)
INTERPRETED = Kernels(
    tuple(interpreted("kernels/" + module.__name__.rpartition(".")[2]) for module in MODULES)
)


@pytest.fixture(params=[COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def kernel(request: pytest.FixtureRequest) -> Kernels:
    found: Kernels = request.param
    return found
