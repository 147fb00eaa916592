from __future__ import annotations

import pytest

from odradek.cli.log.decoders import bytes_decoder, to_integer, to_string


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"plain", "plain"),
        ("grün €😀".encode(), "grün €😀"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd"),  # a surrogate: one character in Java, three in Python
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0!", "\ufffd!"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
def test_what_is_not_utf_8_is_replaced_as_in_java(content: bytes, text: str) -> None:
    assert to_string(content) == text


def test_integers_are_big_endian_and_signed() -> None:
    assert to_integer(b"\xff\xff\xff\xfe") == "-2"
    assert to_integer(b"\0\0\0\0\0\0\1\0") == "256"
    assert to_integer(b"\0") == "<1 bytes, not an integer>"


def test_kafkas_names_work_with_and_without_package() -> None:
    assert bytes_decoder("org.apache.kafka.tools.api.LongDecoder") is bytes_decoder("LongDecoder")
    with pytest.raises(KeyError):
        bytes_decoder("com.example.Mine")
