"""Random ids of topics and clusters, as Kafka draws them."""

from __future__ import annotations

from uuid import UUID, uuid4

from odradek.common.ids import uuid_to_text


def random_uuid() -> UUID:
    """A uuid whose text does not begin with a dash, which tools would take for an option."""
    while True:
        drawn = uuid4()
        if not uuid_to_text(drawn).startswith("-"):
            return drawn
