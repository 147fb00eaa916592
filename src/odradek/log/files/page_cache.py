"""Asks the kernel how much of a file is in the page cache (cachestat, Linux 6.5 and later).

range:  u64 position, u64 length
result: u64 pages cached, dirty, under writeback, evicted, evicted recently
"""

from __future__ import annotations

import ctypes
import sys

_CACHESTAT = 451  # the same number on every architecture
_PAGE_BYTES = 4096


class _Range(ctypes.Structure):
    _fields_ = (("position", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Answer(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


_syscall = ctypes.CDLL(None).syscall if sys.platform == "linux" else None


def is_cached(fd: int, position: int, length: int) -> bool:
    """Whether every page of that range is in memory; False if the kernel does not support this."""
    if _syscall is None:
        return False
    asked, answer = _Range(position, length), _Answer()
    if _syscall(_CACHESTAT, fd, ctypes.byref(asked), ctypes.byref(answer), 0) != 0:
        return False
    first, last = position // _PAGE_BYTES, (position + length - 1) // _PAGE_BYTES
    return bool(answer.cached >= last - first + 1)
