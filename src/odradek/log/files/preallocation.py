"""Allocates disk space for bytes still to be written, without changing the file size (fallocate of Linux)."""

from __future__ import annotations

import ctypes
import os
import sys

_KEEP_SIZE = 1

_fallocate = (
    getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None) if sys.platform == "linux" else None
)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def take_room(fd: int, position: int, length: int) -> None:
    """Allocate space for that range of the file, if the system supports it. OSError if the disk refuses."""
    if _fallocate is not None and _fallocate(fd, _KEEP_SIZE, position, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
