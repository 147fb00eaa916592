"""The assignors that a broker runs for groups of the new protocol (KIP-848), by name.

uniform   balanced over all topics together, with as few moves as possible
range     topic by topic, the same ranges in every topic
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.assignors import range as by_range
from odradek.assignors import sticky
from odradek.assignors.subscription import Assignor

SERVER_ASSIGNORS: Mapping[str, Assignor] = {"uniform": sticky.assign, "range": by_range.assign}
