"""Types of writer.pyx."""

from typing import Any

from odradek.protocol.native.plan import Plan

def encode(plan: Plan, message: object) -> bytes: ...
def encode_frame(header_plan: Plan, header: object, plan: Plan, message: object) -> list[Any]: ...
