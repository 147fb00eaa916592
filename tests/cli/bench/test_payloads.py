from __future__ import annotations

import zlib

from odradek.cli.bench.payloads import MOST, MOST_BYTES, make_payloads


def test_values_are_letters_of_the_size_that_was_asked_for():
    payloads = make_payloads(100, 50)
    assert [len(payload) for payload in payloads] == [100] * 50
    assert all(payload.isalpha() and payload.isupper() for payload in payloads)
    assert payloads == make_payloads(100, 50), "the same in every run"


def test_there_are_never_too_many_to_keep():
    assert len(make_payloads(10, 10**9)) == MOST
    assert len(make_payloads(MOST_BYTES // 2, 10)) == 2
    assert len(make_payloads(2 * MOST_BYTES, 10)) == 1
    assert set(make_payloads(0, 3)) == {b""}


def test_compression_finds_no_more_than_in_letters():
    together = b"".join(make_payloads(100, 1000))
    assert 0.55 < len(zlib.compress(together)) / len(together) < 0.7
