from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.groups.reset_goals import (
    Goal,
    Known,
    Target,
    new_offset,
    parse_datetime_ms,
    parse_duration_ms,
)
from odradek.cli.options import UsageProblem
from odradek.common.ids import TopicPartition

PARTITION = TopicPartition("orders", 0)
offsets = st.integers(0, 1000)


@given(
    target=st.sampled_from(Target),
    number=st.integers(-2000, 2000),
    ends=st.tuples(offsets, offsets),
    draws=st.data(),
)
def test_a_group_never_goes_outside_the_log(target, number, ends, draws):
    earliest, latest = sorted(ends)
    inside = st.integers(earliest, latest)
    known = Known(earliest, latest, draws.draw(inside), draws.draw(st.none() | inside))
    offset, note = new_offset(Goal(target, number, {PARTITION: number}), PARTITION, known)
    assert earliest <= offset <= latest
    if target is Target.OFFSET:
        assert (note is None) == (offset == number)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("pt5m", 300_000),
        ("PT0.5S", 500),
        ("P1DT2H3M4S", 93_784_000),
        ("PT0S", 0),
    ],
)
def test_durations_are_as_iso_8601_says(text, ms):
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "P1DT"])
def test_what_is_no_duration_is_a_mistake(text):
    with pytest.raises(UsageProblem, match="is no duration"):
        parse_duration_ms(text)


def test_a_date_without_a_zone_is_utc_as_for_kafkas_tool():
    assert parse_datetime_ms("1970-01-01T00:00:01.500") == 1500
    assert parse_datetime_ms("1970-01-01T01:00:00+01:00") == 0
    assert parse_datetime_ms("1970-01-02") == 86_400_000
