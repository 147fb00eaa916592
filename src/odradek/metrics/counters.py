# cython: annotation_typing=False
"""Counters: plain numbers, incremented by the event loop that owns them.

Compiled by Cython (counters.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations


class RequestCounters:
    """The requests of one API on one listener."""

    __slots__ = ("errors", "request_bytes", "requests", "response_bytes", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.errors = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.seconds = 0.0  # from request to response, the time in purgatory included


class TopicTraffic:
    """The traffic of one topic on this broker."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
