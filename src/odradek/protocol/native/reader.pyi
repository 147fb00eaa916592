"""Types of reader.pyx."""

from typing import Any

from odradek.protocol.limits import DecodeLimits
from odradek.protocol.native.plan import Plan

def new_struct(plan: Plan) -> Any: ...
def decode(plan: Plan, buffer: bytes | bytearray | memoryview, start: int, limits: DecodeLimits) -> tuple[Any, int]: ...
