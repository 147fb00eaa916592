"""The hashes that decide about partitions and coordinators: the same numbers as Java's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.conftest import COMPILED, INTERPRETED
from records.peers import kafka_python_murmur2

# What Java's Utils.murmur2 and String.hashCode answered; test_java.py asks them again.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "digest"), MURMUR2.items())
def test_murmur2_is_javas(kernel, key, digest):
    assert kernel.murmur2(key) == digest


@given(key=st.binary(max_size=70))
def test_murmur2_is_kafka_pythons_for_any_key(key):
    expected = kafka_python_murmur2(key)
    signed = expected - 2**32 if expected >= 2**31 else expected

    assert COMPILED.murmur2(key) == signed
    assert INTERPRETED.murmur2(key) == signed


def test_to_positive_clears_the_sign_bit(kernel):
    assert kernel.to_positive(-1) == 0x7FFFFFFF
    assert kernel.to_positive(-(2**31)) == 0
    assert kernel.to_positive(5) == 5
