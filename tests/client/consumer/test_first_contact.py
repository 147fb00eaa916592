"""Silence before the first success has an end; after it, none."""

from __future__ import annotations

from odradek.client.consumer.first_contact import FirstContact
from odradek.client.errors import ConnectionFailed

NOBODY = ConnectionFailed("host:1", "the connection was refused")


def test_failures_are_reported_when_the_time_is_over_and_again_after_as_long() -> None:
    contact = FirstContact("joining group g", 100)

    reported = [contact.failed(NOBODY, now_ms) is not None for now_ms in (1000, 1099, 1100, 1101, 1200, 1201)]

    assert reported == [False, False, True, False, False, True]
    problem = FirstContact("joining group g", 0).failed(NOBODY, 0)
    assert str(problem) == f"joining group g did not succeed within 0 ms: {NOBODY}"


def test_an_outage_after_a_success_is_outlasted_in_silence() -> None:
    contact = FirstContact("fetching", 100)
    contact.succeeded()

    assert [contact.failed(NOBODY, now_ms) for now_ms in (0, 1000, 10_000)] == [None, None, None]
