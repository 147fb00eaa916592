"""Where to begin without an offset: `auto_offset_reset` as the time in ListOffsets requests. No I/O.

earliest               the first record
latest                 what comes next
by_duration:P1DT12H    the first record that is not older than a day and a half (KIP-1106)
none                   an error
"""

from __future__ import annotations

import re

from odradek.client.consumer.positions import EARLIEST, LATEST
from odradek.common.config import Valid

BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?",
    re.ASCII,
)
_SECONDS = (86_400, 3600, 60, 1)


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration of days, hours, minutes and seconds; None if it is not one."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    return round(sum(float(n or 0) * unit for n, unit in zip(found.groups(), _SECONDS, strict=True)) * 1000)


def time_to_begin(policy: str, now_ms: int) -> int | None:
    """The time to request from leaders, in ms or as EARLIEST or LATEST; None if no reset is configured."""
    if policy.startswith(BY_DURATION):
        length_ms = duration_ms(policy.removeprefix(BY_DURATION))
        return None if length_ms is None else max(0, now_ms - length_ms)
    return {"earliest": EARLIEST, "latest": LATEST}.get(policy)


VALID_RESET = Valid(
    lambda policy: policy == "none" or time_to_begin(str(policy), 0) is not None,
    "one of earliest, latest, none or by_duration:PnDTnHnMn.nS",
)
