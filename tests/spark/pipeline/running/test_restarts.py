"""When a failed run starts again."""

from __future__ import annotations

from odradek.spark.pipeline.definition.model import Restart
from odradek.spark.pipeline.running.restarts import Restarts, after_failure

POLICY = Restart(attempts=3, delay_s=2.0, max_delay_s=5.0, reset_after_s=100.0)


def test_each_restart_in_a_row_waits_longer_and_their_number_is_limited():
    restarts, delays = Restarts(POLICY), []
    for _ in range(4):
        restarts, delay_s = after_failure(restarts, ran_s=1.0, is_permanent=False)
        delays.append(delay_s)
    assert delays == [2.0, 4.0, 5.0, None]
    assert restarts.total == 3


def test_a_long_run_counts_as_healthy():
    restarts = Restarts(POLICY, in_a_row=3, total=3)
    assert after_failure(restarts, ran_s=100.0, is_permanent=False) == (Restarts(POLICY, 1, 4), 2.0)


def test_what_would_fail_again_is_not_tried_again():
    assert after_failure(Restarts(POLICY), ran_s=1.0, is_permanent=True)[1] is None
    assert after_failure(Restarts(Restart(attempts=0)), ran_s=1.0, is_permanent=False)[1] is None
