from __future__ import annotations

from odradek.common.repeated_warnings import INTERVAL_MS, MAX_KEYS, RepeatedWarnings

NOW_MS = 1_700_000_000_000


def test_each_warning_is_logged_once_per_interval():
    warnings = RepeatedWarnings()

    due = [
        warnings.is_due("broker 1", NOW_MS),
        warnings.is_due("broker 1", NOW_MS + INTERVAL_MS - 1),
        warnings.is_due("broker 2", NOW_MS + 1),
        warnings.is_due("broker 1", NOW_MS + INTERVAL_MS),
        warnings.is_due("broker 1", NOW_MS + INTERVAL_MS + 1),
    ]

    assert due == [True, False, True, True, False]


def test_a_clock_that_is_set_back_silences_nothing():
    warnings = RepeatedWarnings()

    assert warnings.is_due("broker 1", NOW_MS)
    assert warnings.is_due("broker 1", NOW_MS - 3_600_000)


def test_peers_that_invent_names_do_not_fill_the_memory():
    warnings = RepeatedWarnings()

    for name in range(3 * MAX_KEYS):
        assert warnings.is_due(name, NOW_MS)

    assert len(warnings._logged_ms) <= MAX_KEYS
