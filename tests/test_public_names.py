from __future__ import annotations

import subprocess
import sys

import pytest

import odradek


@pytest.mark.parametrize("name", [name for name in odradek.__all__ if name != "__version__"])
def test_every_public_name_is_there(name):
    assert getattr(odradek, name).__name__ == name


def test_an_unknown_name_is_an_error_as_of_any_module():
    with pytest.raises(AttributeError, match="no attribute 'Prodcuer'"):
        _ = odradek.Prodcuer


def test_importing_the_package_loads_no_room():
    check = "import sys, odradek; print([name for name in sys.modules if name.startswith('odradek.')])"
    told = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
