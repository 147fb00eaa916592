"""The topic that has the groups and their offsets."""

from __future__ import annotations

CONSUMER_OFFSETS = "__consumer_offsets"
