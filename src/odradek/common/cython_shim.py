"""Stands in for the `cython` module where kernels.py runs interpreted and Cython is not installed.

Only what kernels.py evaluates at run time is here; its type annotations are never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

Decorated = TypeVar("Decorated")

compiled = False


def cfunc(function: Decorated) -> Decorated:
    """Compiled: a C function."""
    return function


def ccall(function: Decorated) -> Decorated:
    """Compiled: a C function that Python may call too."""
    return function


def inline(function: Decorated) -> Decorated:
    """Compiled: a hint to the C compiler."""
    return function


def cclass(decorated: Decorated) -> Decorated:
    """Compiled: an extension type."""
    return decorated


def final(decorated: Decorated) -> Decorated:
    """Compiled: nothing may inherit from the class."""
    return decorated


def no_gc(decorated: Decorated) -> Decorated:
    """Compiled: instances are unknown to the garbage collector."""
    return decorated


def exceptval(*_values: object, check: bool = True) -> Callable[[Decorated], Decorated]:
    """Compiled: how a C function tells that it raised."""
    return lambda function: function


def cast(_type: object, value: Decorated) -> Decorated:
    """Compiled: a C cast."""
    return value


class _NoGil(AbstractContextManager[None]):
    """Compiled: a block or a function that runs without the interpreter lock."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_exception: object) -> None:
        return None

    def __call__(self, function: Decorated) -> Decorated:
        return function


nogil = _NoGil()
longlong = ulonglong = int
