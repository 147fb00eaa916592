"""A listener that lets everybody in at once, as most tests want it."""

from __future__ import annotations

from odradek.net.server import Listener

HOST = "127.0.0.1"


def serve(listener: Listener) -> None:
    """Listen on a free port and accept; call it on the running loop."""
    listener.listen(HOST, 0)
    listener.start_accepting()
