# cython: annotation_typing=False
"""A run of a log file as a part of an answer: from the page cache to the socket, never through Python.

Compiled by Cython (file_parts.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import cython

from odradek.log.files.file_system import FileRange

if cython.compiled:
    from cython.cimports.odradek.net.socket_calls import NOTHING_YET, send_file
else:
    from odradek.net.socket_calls import NOTHING_YET, send_file


class LogPart:
    """Whole batches in a segment. It holds the file open, so that retention cannot pull it away."""

    __slots__ = ("_length", "_range")

    def __init__(self, file_range: FileRange) -> None:
        self._range = file_range
        self._length = file_range.length

    def __len__(self) -> int:
        return self._length

    def send_to(self, socket_fd: int, start: int) -> int:
        """Send from byte `start` of the run on; how many bytes went, 0 if none could."""
        run = self._range
        sent: int = send_file(socket_fd, run.file.fd, run.position + start, run.length - start)
        if sent == 0:
            # Truncated under us: the client was promised bytes that are gone, so the connection must end.
            raise OSError("the log file became shorter while it was sent")
        return 0 if sent == NOTHING_YET else sent

    def read(self) -> bytes:
        """The bytes themselves, for an answer that is small enough to be one buffer."""
        found = self._range.read()
        if len(found) < self._length:
            raise OSError("the log file became shorter before it was sent")
        return found
