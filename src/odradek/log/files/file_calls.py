"""Writes for compiled code: by descriptor, with zeroes after the bytes in the same call.

file_calls.pxd has the C side; both are used alike.
"""

from __future__ import annotations

import os

MAX_ZEROES = 128 << 10

_ZEROES = memoryview(bytes(MAX_ZEROES))


def write_run(fd: int, payload: memoryview, position: int, zeroes: int) -> int:
    """Write the bytes and then zeroes, at most MAX_ZEROES; how many bytes were written, maybe none.

    Errors are not raised: writing the rest will raise them.
    """
    try:
        return os.pwritev(fd, (payload, _ZEROES[:zeroes]), position)
    except OSError:
        return 0
