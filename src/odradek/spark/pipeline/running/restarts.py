"""Whether and when a failed run starts again: decided from the policy and the failures so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from odradek.spark.pipeline.definition.model import Restart


@dataclass(frozen=True, slots=True)
class Restarts:
    """The restarts since the run was last healthy."""

    policy: Restart
    in_a_row: int = 0
    total: int = 0


def after_failure(restarts: Restarts, ran_s: float, is_permanent: bool) -> tuple[Restarts, float | None]:
    """The new count, and after how many seconds to start again; None: give up."""
    in_a_row = 0 if ran_s >= restarts.policy.reset_after_s else restarts.in_a_row
    if is_permanent or in_a_row >= restarts.policy.attempts:
        return replace(restarts, in_a_row=in_a_row), None
    delay_s = min(restarts.policy.max_delay_s, restarts.policy.delay_s * 2**in_a_row)
    return replace(restarts, in_a_row=in_a_row + 1, total=restarts.total + 1), delay_s
