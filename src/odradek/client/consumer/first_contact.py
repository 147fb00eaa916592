"""How long a consumer that has never got through keeps trying without a word. No I/O, and the clock is given.

Once it has worked, a consumer outlasts any outage in silence, as Kafka's own does. Before that it is more
likely that an address or a setting is wrong, and the user should hear of it in `default_api_timeout_ms`.
"""

from __future__ import annotations

from odradek.client.errors import DeadlineExceeded


class FirstContact:
    """The wait for the first success of something. Owned by whoever tries."""

    def __init__(self, what: str, timeout_ms: int) -> None:
        self._what = what
        self._timeout_ms = timeout_ms
        self._failing_since_ms: float | None = None
        self._has_worked = False

    def worked(self) -> None:
        """From now on failures are outages."""
        self._has_worked = True

    def failed(self, error: BaseException, now_ms: float) -> DeadlineExceeded | None:
        """What the user should be told now, if anything; then the wait begins anew."""
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        if self._has_worked or now_ms - self._failing_since_ms < self._timeout_ms:
            return None
        self._failing_since_ms = None
        told = DeadlineExceeded(self._what, self._timeout_ms, error)
        told.__cause__ = error
        return told
