"""Places where a test stops a write, to kill a process or a broker there.

The variable ODRADEK_SPARK_HOOK has the host:port of a test; without it nothing happens. A process that comes
to a place connects to it, tells the place and its own process id, and goes on when it gets an answer.
"""

from __future__ import annotations

import os
import socket

VARIABLE = "ODRADEK_SPARK_HOOK"

BEFORE_BEGIN = "before-begin"
AFTER_BEGIN = "after-begin"
BEFORE_PRODUCE = "before-produce"
DURING_PRODUCE = "during-produce"
AFTER_PRODUCE = "after-produce"
BEFORE_MARKER = "before-marker"
BEFORE_END = "before-end"
AFTER_END = "after-end"
"""Of `exactly_once` a micro-batch comes to them in this order; the three of producing are in each task.

By the data source tasks only pack their rows, between BEFORE_PRODUCE and AFTER_PRODUCE; then the commit
begins, and produces by itself: DURING_PRODUCE is there.
"""

POINTS = (
    BEFORE_BEGIN,
    AFTER_BEGIN,
    BEFORE_PRODUCE,
    DURING_PRODUCE,
    AFTER_PRODUCE,
    BEFORE_MARKER,
    BEFORE_END,
    AFTER_END,
)


def reach(point: str) -> None:
    """Tell the test, if there is one, and wait until it lets this process go on."""
    address = os.environ.get(VARIABLE)
    if address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as test:
            test.sendall(f"{point} {os.getpid()}\n".encode())
            test.recv(1)
