from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.consume.record_format import as_json, console, format_string, plain, unescape
from odradek.cli.options import UsageProblem
from odradek.client.consumer.consumer_record import ConsumerRecord

RECORD = ConsumerRecord("orders", 3, 42, 1700, b"k", b"value", (("a", b"1"), ("b", None)))
NULLS = ConsumerRecord("orders", 3, 42, -1, timestamp_type=1)


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("%t %p %o %T\\n", b"orders 3 42 1700\n"),
        ("%k=%s", b"k=value"),
        ("%K %S", b"1 5"),
        ("%h", b"a=1,b="),
        ("100%% \\x41\\t\\\\", b"100% A\t\\"),
        ("Gr\u00fc\u00dfe %s", "Gr\u00fc\u00dfe value".encode()),
        ("", b""),
    ],
)
def test_a_format_string_has_kcats_tokens(template, printed):
    assert format_string(template)(RECORD) == printed


def test_a_null_is_nothing_or_what_is_wanted_for_it():
    assert format_string("[%k|%s|%K|%S|%h]")(NULLS) == b"[||-1|-1|]"
    assert format_string("[%k|%s]", b"NULL")(NULLS) == b"[NULL|NULL]"
    assert plain(b"\n", b":", b"NULL")(NULLS) == b"NULL:NULL\n"


@pytest.mark.parametrize("template", ["%x", "%", "a%"])
def test_an_unknown_token_is_a_mistake(template):
    with pytest.raises(UsageProblem, match="-f has no %"):
        format_string(template)


def test_json_has_kcats_names():
    assert json.loads(as_json(RECORD)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "tstype": "create",
        "ts": 1700,
        "headers": ["a", "1", "b", None],
        "key": "k",
        "payload": "value",
    }
    nulls = json.loads(as_json(NULLS))
    assert (nulls["key"], nulls["payload"], nulls["tstype"]) == (None, None, "logappend")


@given(value=st.binary(), key=st.none() | st.binary())
def test_any_record_is_one_line_of_json(value, key):
    line = as_json(ConsumerRecord("orders", 3, 42, 1700, key, value))
    assert line.count(b"\n") == 1
    json.loads(line)


def test_columns_of_the_console_consumer():
    wanted = ("timestamp", "partition", "offset", "headers", "key")
    properties = {f"print.{name}": "true" for name in wanted}
    assert console(properties)(RECORD) == b"CreateTime:1700\tPartition:3\tOffset:42\ta:1,b:null\tk\tvalue\n"
    assert console(properties)(NULLS) == b"NO_TIMESTAMP\tPartition:3\tOffset:42\tNO_HEADERS\tnull\tnull\n"
    assert console({"print.key": "true", "key.separator": "=", "print.value": "false"})(RECORD) == b"k\n"


@pytest.mark.parametrize(
    ("typed", "meant"), [("\\t", b"\t"), (":", b":"), ("%", b"%"), ("\\q", b"\\q"), ("", b"")]
)
def test_a_delimiter_may_have_escapes(typed, meant):
    assert unescape(typed) == meant
