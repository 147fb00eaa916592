# cython: annotation_typing=False
"""The usual case of a poll, from the user's call to the fetched records.

Compiled by Cython (poll_path.pxd has the C types), or interpreted as is. A base class of the consumer, so
that nothing lies between a user's `poll` and this one.
"""

from __future__ import annotations

import threading

import cython

from odradek.client.arguments import seconds
from odradek.client.consumer.errors import NotSubscribed
from odradek.client.errors import ClientClosed

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

LONGEST_SLICE_S = 1.0
"""A long poll is cut into slices, each of which counts as a poll for max.poll.interval.ms."""


class PollPath:
    """`poll`; subclasses handle other cases in `_handle_demands`, `_fetch_more` and `_commit_if_due`."""

    def __init__(self, fetch_buffer, reader, max_poll_records):
        self._fetch_buffer = fetch_buffer
        self._reader = reader
        self._max_poll_records = max_poll_records
        self._using = threading.RLock()
        self._background = None
        self._engine = None
        self._auto_commit = None
        self._is_open = False  # until everything has started

    def __class_getitem__(cls, _types):
        """Written where a class inherits; it means something to type checkers only."""
        return cls

    def poll(self, timeout=0.0, *, max_records=None):
        """Records that came next, at most `max_poll_records`; waits up to `timeout` seconds for the first.

        Also calls listeners and raises errors of the background thread.
        """
        limit = self._max_poll_records if max_records is None else max_records
        records = self._poll(timeout, limit, None)
        return [] if records is None else records

    def _poll(self, timeout, limit, take):
        """The result of `take`, or up to `limit` records of the reader; None if there are none in time."""
        self._begin_to_use()
        try:
            if not self._engine.states and not self._engine.is_subscribed:
                raise NotSubscribed("nothing to poll: subscribe() or assign() first")
            self._reader.statistics.polls += 1
            return self._take_or_wait(seconds(timeout), limit, take)
        finally:
            self._using.release()

    def _take_or_wait(self, timeout_s, limit, take):
        fetch_buffer, reader = self._fetch_buffer, self._reader
        now = monotonic_seconds()
        deadline = now + timeout_s
        if self._auto_commit is not None:
            self._commit_if_due(now * 1000)
        while True:
            self._engine.polled_ms = now * 1000
            if fetch_buffer.has_demands():
                self._handle_demands()
            taken = reader.next_records(limit) if take is None else take()
            if reader.has_drained:
                self._fetch_more()
            if taken:
                return taken
            now = monotonic_seconds()
            if now < deadline:
                fetch_buffer.wait(min(deadline - now, LONGEST_SLICE_S))
            elif not fetch_buffer.read_available():
                return None

    def _begin_to_use(self):
        if not self._is_open:
            raise ClientClosed("consumer")
        self._background.check()
        if not self._using.acquire(False):
            raise RuntimeError("another thread uses this consumer; give each thread its own")
