"""The compiled kernels and their interpreted twins behind one fixture."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from odradek.log.cleaner.filter import batch_filter, copy_kernels, kernels, layout, offset_map

SOURCES = Path(layout.__file__).parent


def interpreted(name: str) -> ModuleType:
    """The same source file, run by Python."""
    loader = SourceFileLoader(f"interpreted_cleaner_{name}", str(SOURCES / f"{name}.py"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


TWINS = {
    "compiled": (kernels, copy_kernels),
    "interpreted": (interpreted("kernels"), interpreted("copy_kernels")),
}


@pytest.fixture(params=list(TWINS))
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """The loops over records."""
    return TWINS[request.param][0]


@pytest.fixture(params=list(TWINS))
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole cleaner on one kind of kernels."""
    records, batches = TWINS[request.param]
    monkeypatch.setattr(offset_map, "kernels", records)
    monkeypatch.setattr(batch_filter, "copy_kernels", batches)
