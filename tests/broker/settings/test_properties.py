"""The grammar of Java's Properties; the oracle is Java itself where it can be had."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.settings.properties import Property, parse_properties, read_properties
from odradek.common.errors import ConfigError

JAVA_READER = Path(__file__).parent / "ReadProperties.java"
pieces = st.sampled_from(
    [
        "a",
        "b.c",
        "=",
        ":",
        " ",
        "\t",
        "\f",
        "\\",
        "\\\\",
        "\n",
        "\r",
        "\r\n",
        "#",
        "!",
        "\\n",
        "\\t",
        "\\u0041",
        "é",
    ]
)
documents = st.lists(pieces, max_size=30).map("".join)


def pairs(text: str) -> dict[str, str]:
    return {one.key: one.value for one in parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a=b  ", {"a": "b  "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a b=c", {"a": "b=c"}),
        ("# a=b\n! c=d\n\n  # e\nf=g", {"f": "g"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=b\\\n  c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# c", {"a": "b# c"}),
        ("a=b\\", {"a": "b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b c", {"a b": "c"}),
        ("a=\\t\\n\\r\\f\\x\\\\", {"a": "\t\n\r\fx\\"}),
        ("a=\\u00e9\\ud83d\\ude00", {"a": "é😀"}),
        ("a=1\ra=2\r\na=3", {"a": "3"}),
        ("=b", {"": "b"}),
    ],
)
def test_a_line_means_what_it_means_to_java(text: str, expected: dict[str, str]) -> None:
    assert pairs(text) == expected


def test_every_pair_knows_the_line_it_begins_in() -> None:
    text = "# first\n\na=1\\\n  2\r\nb=3\n"

    assert parse_properties(text) == [Property("a", "12", 3), Property("b", "3", 5)]


def test_half_an_escape_is_reported_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"server.properties, line 2: \\u needs four hexadecimal digits"):
        parse_properties("a=b\nc=\\u12", "server.properties")


def test_a_file_that_is_not_there_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: No such file or directory"):
        read_properties(str(tmp_path / "nowhere.properties"))


def test_bytes_are_latin_1_as_java_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"broker.rack=z\xfcrich\r\n")

    assert read_properties(str(path)) == [Property("broker.rack", "zürich", 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#\n\\\n\n\n", {}),
        ("\\\n#x\\\na\n", {"a": ""}),
        ("\\\n\\\n  !x\n", {}),
        ("a\\\n#x\n", {"a#x": ""}),
        ("\\\n", {"": ""}),
        ("\r\n \\\r\n", {}),
        ("a\\\r\n", {"a": ""}),
        ("\\\r", {"": ""}),
        ("\\", {"": ""}),
    ],
    ids=[
        "blank",
        "comment",
        "two",
        "not alone",
        "at the end",
        "before \\r\\n",
        "a key before \\r\\n",
        "before \\r",
        "without a line end",
    ],
)
def test_a_lone_backslash_begins_a_new_line(text: str, expected: dict[str, str]) -> None:
    assert pairs(text) == expected  # as Java's Properties answered when asked


@given(text=st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_properties(text)


@pytest.mark.java
def test_java_reads_the_same_pairs(tmp_path: Path) -> None:
    texts = _examples()
    (tmp_path / "texts.json").write_text("\n".join(text.encode("latin-1").hex() for text in texts))

    answers = subprocess.run(
        ["java", JAVA_READER, tmp_path / "texts.json"], check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert len(answers) == len(texts)
    for text, answer in zip(texts, answers, strict=True):
        theirs = {bytes.fromhex(k).decode(): bytes.fromhex(v).decode() for k, v in json.loads(answer)}
        assert pairs(text) == theirs, repr(text)


def _examples() -> list[str]:
    found: list[str] = []

    @given(text=documents)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found
