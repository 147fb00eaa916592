"""How long a consumer that has never connected retries before it reports an error. No I/O, no clock.

After the first success a consumer retries forever, as Kafka's own does. Before that it is more likely
that an address or a setting is wrong, and an error is raised after `default_api_timeout_ms`.
"""

from __future__ import annotations

from odradek.client.errors import DeadlineExceeded


class FirstContact:
    """Tracks failures until the first success."""

    def __init__(self, what: str, timeout_ms: int) -> None:
        self._what = what
        self._timeout_ms = timeout_ms
        self._failing_since_ms: float | None = None
        self._has_worked = False

    def succeeded(self) -> None:
        """Report no more failures."""
        self._has_worked = True

    def failed(self, error: BaseException, now_ms: float) -> DeadlineExceeded | None:
        """The error to raise now, if any; then the wait starts again."""
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        if self._has_worked or now_ms - self._failing_since_ms < self._timeout_ms:
            return None
        self._failing_since_ms = None
        timed_out = DeadlineExceeded(self._what, self._timeout_ms, error)
        timed_out.__cause__ = error
        return timed_out
