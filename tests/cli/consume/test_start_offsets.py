from __future__ import annotations

import pytest

from odradek.cli.consume.start_offsets import Bounds, first_offset, parse_span
from odradek.cli.options import UsageProblem

BOUNDS = Bounds(earliest=5, latest=100, at_timestamp=50)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("beginning", 5),
        ("earliest", 5),
        ("end", 100),
        ("latest", 100),
        ("7", 7),
        ("0", 5),
        ("-10", 90),
        ("-1000", 5),
        ("-0", 100),
        ("s@1700000000000", 50),
        ("s@2026-01-31T12:00+00:00", 50),
    ],
)
def test_every_word_of_kcat_leads_to_an_offset(text, offset):
    assert first_offset(parse_span((text,)), BOUNDS) == offset


def test_a_time_after_all_records_is_the_end():
    assert first_offset(parse_span(("s@99",)), Bounds(5, 100, None)) == 100


def test_without_a_word_it_is_the_beginning():
    assert first_offset(parse_span(()), BOUNDS) == 5


def test_an_end_goes_with_any_beginning():
    span = parse_span(("s@1000", "e@2000"))
    assert (span.number, span.stop_ms) == (1000, 2000)
    assert parse_span(("e@1970-01-01T00:00:02+00:00",)).stop_ms == 2000


@pytest.mark.parametrize("texts", [("soon",), ("--5",), ("5", "6"), ("s@never",), ("e@",), ("\u0663",)])
def test_what_makes_no_sense_is_a_mistake(texts):
    with pytest.raises(UsageProblem):
        parse_span(texts)
