# cython: annotation_typing=False
"""A range of a log file as part of a response: from the page cache to the socket by sendfile.

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
    """Whole batches in a segment. It keeps the file open, so that it can be sent after its deletion."""

    __slots__ = ("_length", "_range")

    def __init__(self, file_range: FileRange) -> None:
        self._range = file_range
        self._length = file_range.length

    def __len__(self) -> int:
        return self._length

    def send_to(self, socket_fd: int, start: int) -> int:
        """Send from byte `start` of the range on; returns the number of bytes sent, 0 if it would block."""
        run = self._range
        sent: int = send_file(socket_fd, run.file.fd, run.position + start, run.length - start)
        if sent == 0:
            # Truncated meanwhile: the response cannot be completed, so the connection is closed.
            raise OSError("the log file became shorter while it was sent")
        return 0 if sent == NOTHING_YET else sent

    def read(self) -> bytes:
        """The bytes, for a response that is small enough for one buffer."""
        found = self._range.read()
        if len(found) < self._length:
            raise OSError("the log file became shorter before it was sent")
        return found
