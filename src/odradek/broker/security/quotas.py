"""How long a client is throttled. No quotas exist yet; this is their interface.

As in Kafka, the response is sent at once with the throttle time, and the connection is not read until then.
"""

from __future__ import annotations

from typing import Protocol

from odradek.protocol.api_key import ApiKey


class Quotas(Protocol):
    """Called once per response, on the loop."""

    def throttle_time_ms(self, api_key: ApiKey, principal: str, client_id: str | None) -> int:
        """How long the client that sent such a request must be silent now; 0 for not at all."""
        ...
