from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import odradek


@pytest.mark.parametrize("name", [name for name in odradek.__all__ if name != "__version__"])
def test_every_public_name_is_there(name):
    assert getattr(odradek, name).__name__.rpartition(".")[2] == name


def test_type_checkers_see_the_same_names():
    stub = Path(odradek.__file__).with_suffix(".pyi").read_text()
    reported = {line.rpartition(" as ")[2] for line in stub.splitlines() if " as " in line}
    assert reported == set(odradek.__all__) - {"__version__"}


def test_an_unknown_name_is_an_error_as_of_any_module():
    with pytest.raises(AttributeError, match="no attribute 'Prodcuer'"):
        _ = odradek.Prodcuer


def test_importing_the_package_loads_no_subpackage():
    check = "import sys, odradek; print([name for name in sys.modules if name.startswith('odradek.')])"
    reported = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert reported.stdout == "[]\n"
