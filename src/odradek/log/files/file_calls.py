"""Writing as compiled code calls it: by descriptor, and zeroes behind the bytes in the same call.

file_calls.pxd has the C side; both are used alike.
"""

from __future__ import annotations

import os

MAX_ZEROES = 128 << 10

_ZEROES = memoryview(bytes(MAX_ZEROES))


def write_run(fd: int, payload: memoryview, position: int, zeroes: int) -> int:
    """Write the bytes and so many zeroes behind them, at most MAX_ZEROES: how many of both went, maybe none.

    What is wrong then, whoever writes the rest will hear.
    """
    try:
        return os.pwritev(fd, (payload, _ZEROES[:zeroes]), position)
    except OSError:
        return 0
