"""Compiled modules, run by Python from the same source file."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType


def interpreted(compiled: ModuleType) -> ModuleType:
    """The same source file, run by Python."""
    name = compiled.__name__.rpartition(".")[2]
    assert compiled.__file__ is not None
    loader = SourceFileLoader(f"interpreted_{name}", str(Path(compiled.__file__).with_name(f"{name}.py")))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
