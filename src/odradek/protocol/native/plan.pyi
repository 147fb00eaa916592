"""Types of plan.pyx."""

from odradek.protocol.compile import StructPlan

class Plan: ...

def prepare(plan: StructPlan) -> Plan: ...
