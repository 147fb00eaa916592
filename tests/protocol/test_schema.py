from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol import schema
from odradek.protocol.errors import SchemaError
from odradek.protocol.schema import NO_VERSIONS, Versions, parse, parse_versions, snake_case

EXAMPLE = """\
request FetchRequest  key=1  versions=0-18  flexible=12+  unstable=18
  ReplicaId      int32     0-14   default=-1
  ReplicaState   struct    15+    tag=1
    ReplicaId    int32     15+    default=-1
  Topics         []struct  0+     null=2-3
    Topic        string    0-12   key default=""
  key            string    1+     never-compact null=1+ default=null

response FetchResponse  key=1  versions=0-18  flexible=none
  ThrottleTimeMs bool      1+     default=true
"""


def test_a_schema_file_says_what_its_grammar_says():
    request, response = parse(EXAMPLE)
    replica_id, state, topics, key = request.fields

    assert (request.kind, request.key, request.versions) == ("request", 1, Versions(0, 18))
    assert (request.flexible.low, request.unstable) == (12, Versions(18, 18))
    assert (replica_id.default, replica_id.versions) == (-1, Versions(0, 14))
    assert (state.tag, state.fields[0].attribute) == (1, "replica_id")
    assert (topics.is_array, topics.type, topics.nullable) == (True, "struct", Versions(2, 3))
    assert (topics.fields[0].is_key, topics.fields[0].default) == (True, "")
    assert (key.never_compact, key.default_is_null, key.class_name) == (True, True, "Key")
    assert (response.flexible, response.fields[0].default) == (NO_VERSIONS, True)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3", Versions(3, 3)), ("3-5", Versions(3, 5)), ("3+", Versions(3, 32767)), ("none", NO_VERSIONS)],
)
def test_version_ranges(text, versions):
    assert parse_versions(text) == versions


def test_the_empty_range_is_false_and_holds_nothing():
    assert not NO_VERSIONS
    assert not any(version in NO_VERSIONS for version in range(3))


@pytest.mark.parametrize(
    "text",
    [
        "request A key=1 versions=0-x flexible=none",
        "question A key=1 versions=0 flexible=none",
        "request A key=1 versions=0 flexible=none\n  F  int24  0+",
        "request A key=1 versions=0 flexible=none\n  F  int32  0+  colour=red",
        "request A key=1 versions=0 flexible=none\n  F  int32  0+\n    G  int32  0+",
        "request A key=1 versions=0 flexible=none\n  F  struct  0+",
        "request A key=1 versions=0 flexible=none\n  F  []int32  0+  default=3",
        "request A key=1 versions=0 flexible=none\n  F  bool  0+  default=maybe",
        "request A key=1 versions=0 flexible=none\n      F  int32  0+",
    ],
)
def test_a_schema_that_breaks_the_grammar_is_refused(text):
    with pytest.raises(SchemaError):
        parse(text)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("ErrorCode", "error_code"),
        ("isKRaftController", "is_kraft_controller"),
        ("LastKnownELR", "last_known_elr"),
        ("URLPath", "url_path"),
        ("Enable2Pc", "enable2_pc"),
        ("from", "from_"),
    ],
)
def test_names_become_python_names(name, attribute):
    assert snake_case(name) == attribute


def test_every_schema_file_is_read_and_no_name_stands_twice():
    parsed = [
        spec
        for path in Path(schema.SCHEMA_DIR).glob("*.txt")
        if path.name != "errors.txt"
        for spec in parse(path.read_text())
    ]
    assert len(parsed) == len(schema.load_all()) == 201
    assert {spec.name for spec in parsed} == set(schema.load_all())


def test_a_file_name_says_its_api_key():
    for path in Path(schema.SCHEMA_DIR).glob("[0-9]*.txt"):
        assert [spec.key for spec in parse(path.read_text())] == [int(path.name[:2])] * 2


def test_one_message_is_found_without_reading_the_others():
    assert schema.load("FetchRequest").key == 1
    assert schema.load("OffsetCommitValue").kind == "coordinator-value"
    assert schema.load_by_key("response", 18).name == "ApiVersionsResponse"
    for missing in ("Fetch", "NoSuchRequest"):
        with pytest.raises(KeyError):
            schema.load(missing)
    with pytest.raises(KeyError):
        schema.load_by_key("request", 999)
