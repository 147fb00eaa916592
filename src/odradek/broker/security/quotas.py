"""How long a client has to be held back. Nobody has a quota so far; this is where they are asked.

Kafka's way: the answer goes out at once and names the time; until it is over, the connection is not read.
"""

from __future__ import annotations

from typing import Protocol

from odradek.protocol.api_key import ApiKey


class Quotas(Protocol):
    """Asked once per answer, on the loop."""

    def throttle_time_ms(self, api_key: ApiKey, principal: str, client_id: str | None) -> int:
        """How long the client that sent such a request must be silent now; 0 for not at all."""
        ...
