"""Warns once that hot code runs interpreted because nothing was compiled at install time."""

from __future__ import annotations

import warnings

_reported: list[bool] = []


def warn_interpreted() -> None:
    """Called by each package whose compiled module is missing."""
    if not _reported:
        _reported.append(True)
        warnings.warn(
            "odradek runs interpreted, and slowly: install a C compiler, then reinstall odradek",
            RuntimeWarning,
            stacklevel=3,
        )
