from __future__ import annotations

from odradek.log.cleaner.throttle import CleanerThrottle, pause_seconds


def test_a_pause_brings_the_average_down_to_the_rate() -> None:
    assert pause_seconds(1000, 0.5, 1000.0) == 0.5
    assert pause_seconds(1000, 2.0, 1000.0) == 0.0


def test_bytes_take_the_time_that_the_rate_gives_them() -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    throttle = CleanerThrottle(1_000_000, lambda: now[0], sleep)
    for _ in range(100):
        now[0] += 0.001
        throttle.pass_bytes(50_000)

    assert 4.9 < now[0] - 100 < 5.2


def test_idle_time_is_not_saved_up() -> None:
    now = [0.0]
    slept: list[float] = []
    throttle = CleanerThrottle(1000, lambda: now[0], slept.append)

    now[0] = 3600
    throttle.pass_bytes(1)
    throttle.pass_bytes(2000)

    assert slept == [2.0]


def test_without_a_limit_nobody_sleeps() -> None:
    slept: list[float] = []
    throttle = CleanerThrottle(1.7976931348623157e308, lambda: 0.0, slept.append)

    throttle.pass_bytes(2**40)

    assert slept == []
