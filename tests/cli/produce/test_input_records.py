from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.consume.record_format import as_json
from odradek.cli.options import UsageProblem
from odradek.cli.produce.input_records import (
    BadInput,
    InputRecord,
    LineParser,
    console_parser,
    parse_json,
    split,
)
from odradek.client.consumer.consumer_record import ConsumerRecord


@given(
    pieces=st.lists(
        st.binary(max_size=20).filter(lambda piece: b"||" not in piece and not piece.endswith(b"|"))
    ),
    size=st.integers(1, 7),
)
def test_pieces_are_the_same_however_they_arrive(pieces, size):
    typed = b"".join(piece + b"||" for piece in pieces)
    chunks = [typed[start : start + size] for start in range(0, len(typed), size)]
    assert list(split(chunks, b"||")) == typed.split(b"||")[:-1]


def test_the_last_piece_needs_no_delimiter():
    assert list(split([b"a\nb"], b"\n")) == [b"a", b"b"]
    assert list(split([b"a\n"], b"\n")) == [b"a"]
    assert list(split([], b"\n")) == []


def test_a_key_comes_before_its_delimiter():
    parse = LineParser(key_delimiter=b":")
    assert parse(1, b"k:v:w") == InputRecord(b"k", b"v:w")
    assert parse(1, b"no key") == InputRecord(None, b"no key")
    assert parse(1, b":v") == InputRecord(b"", b"v")


def test_what_is_empty_can_be_null():
    parse = LineParser(key_delimiter=b":", null=b"")
    assert parse(1, b"k:") == InputRecord(b"k", None)
    assert parse(1, b":v") == InputRecord(None, b"v")


def test_properties_of_the_console_producer():
    parse = console_parser({"parse.key": "true", "parse.headers": "true", "null.marker": "NULL"})
    assert parse(1, b"a:1,b:2\tk\tv") == InputRecord(b"k", b"v", (("a", b"1"), ("b", b"2")))
    assert parse(1, b"\tNULL\tNULL") == InputRecord(None, None)
    with pytest.raises(BadInput, match="record 7 of the input: no key: there is no '\\\\t' in it"):
        parse(7, b"a:1\tvalue")
    with pytest.raises(BadInput, match="header 'a' has no value"):
        parse(1, b"a\tk\tv")
    assert console_parser({"parse.key": "true", "ignore.error": "true"})(1, b"v") == InputRecord(None, b"v")
    with pytest.raises(UsageProblem, match=r"--property parse\.kee: there are"):
        console_parser({"parse.kee": "true"})


@given(
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
    headers=st.lists(st.tuples(st.text(), st.none() | st.text().map(str.encode))),
    timestamp_ms=st.integers(0, 2**62),
)
def test_what_consume_prints_as_json_comes_back(key, value, headers, timestamp_ms):
    line = as_json(ConsumerRecord("t", 0, 0, timestamp_ms, key, value, tuple(headers)))
    assert parse_json(1, line) == InputRecord(key, value, tuple(headers), timestamp_ms)


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ({"value": "v"}, InputRecord(None, b"v")),
        ({"payload": {"a": [1]}}, InputRecord(None, b'{"a": [1]}')),
        ({"payload": None, "topic": "t", "offset": 3}, InputRecord(None, None)),
        ({"value_base64": "/w=="}, InputRecord(None, b"\xff")),
    ],
)
def test_json_may_leave_things_out_and_nest(line, record):
    assert parse_json(1, json.dumps(line).encode()) == record


def test_an_unknown_field_is_refused_by_name():
    with pytest.raises(BadInput, match="record 2 of the input: unknown field 'customer'; a record has key,"):
        parse_json(2, b'{"payload": "v", "customer": 7}')


@pytest.mark.parametrize("line", [b"{}", b'{"key": "k"}'])
def test_a_tombstone_is_never_made_by_leaving_the_payload_out(line):
    with pytest.raises(BadInput, match="record 1 of the input: no field 'payload'"):
        parse_json(1, line)


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"headers": ["a"]}', b'{"ts": "now"}', b'{"payload_base64": "?"}', b"\xff"]
)
def test_what_is_no_such_object_is_reported_with_its_number(line):
    with pytest.raises(BadInput, match="record 3 of the input"):
        parse_json(3, line)
