"""Whatever stands in a YAML file, it is a pipeline or a PipelineError, and never a traceback."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark.pipeline.definition.checks import check
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import PipelineModel
from odradek.spark.pipeline.definition.yaml_file import parse, without_schema

FULL: dict[str, Any] = {
    "name": "all",
    "description": "of everything",
    "bootstrap": "a:1",
    "connector": "odradek",
    "sources": {
        "orders": {
            "topics": ["orders", "returns"],
            "format": "json",
            "schema": {"id": "bigint not null", "at": "timestamp"},
            "skip_bytes": 5,
            "start": "2026-01-31T12:00Z",
            "bad_records": "dead-letter",
            "data_loss": "stop",
            "watermark": {"column": "at", "delay": "10 minutes"},
            "max_offsets_per_trigger": 10,
            "min_offsets_per_trigger": 1,
            "max_trigger_delay": "1 minute",
            "options": {"includeHeaders": True},
        },
        "clicks": {"pattern": "clicks-.*", "format": "text", "bootstrap": "b:1"},
        "people": {"topic": "people", "table": True},
        "shops": {
            "files": "shops",
            "format": "csv",
            "schema": "id bigint, name string",
            "stream": True,
            "watermark": {"column": "id", "delay": "1 day"},
            "max_files_per_trigger": 1,
        },
    },
    "transforms": {
        "daily": "SELECT * FROM orders",
        "late": {"sql": "SELECT * FROM clicks", "watermark": {"column": "value", "delay": "1 second"}},
    },
    "sinks": {
        "copies": {"from": "late", "topic": "copies", "format": "none", "mode": "append"},
        "files": {"from": "daily", "parquet": "out", "partition_by": ["id"], "options": {"a": 1}},
        "merged": {"from": "daily", "delta": "table", "key": "id", "mode": "update"},
        "latest": {
            "from": "daily",
            "snapshot": "latest",
            "key": ["id"],
            "order_by": "at",
            "delete_when": "id = 1",
        },
        "shown": {"from": "shops", "console": True, "rows": 3},
    },
    "dead_letters": {"topic": "dead", "bootstrap": "a:1"},
    "checkpoint": "there",
    "trigger": "1 second",
    "partitions": 2,
    "restart": {"attempts": 2, "delay": "1 second", "max_delay": "1 minute", "reset_after": "1 hour"},
    "spark": {"spark.sql.x": 1},
}

SMALL = {
    "name": "small",
    "sources": {"orders": {"topic": "orders"}},
    "sinks": {"out": {"from": "orders", "parquet": "out"}},
}

scalars = st.sampled_from(
    [None, True, False, 0, 5, -1, 1.5, float("inf"), 10**30, "", "a", "a,b", "1 s", "("]
)
values = st.recursive(
    scalars | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def changed(path: tuple[Any, ...], new: Any) -> Any:
    """A small file with the one part that is changed, because reading YAML takes the time of these tests."""
    if not path:
        return new
    kept = copy.deepcopy(FULL[path[0]])
    if path[0] in ("sources", "transforms", "sinks") and len(path) > 1:
        kept = {path[1]: kept[path[1]]}
    root = SMALL | {path[0]: kept}
    part: Any = root
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = new
    return root


def outcome(content: Any) -> PipelineModel | str:
    text = yaml.safe_dump(content, sort_keys=False)
    try:
        without_schema(text, "all.yaml", {})
        pipeline = parse(text, "all.yaml", {})
        check(pipeline)
    except PipelineError as error:
        return str(error)
    return pipeline


def test_the_whole_file_is_a_pipeline():
    assert isinstance(outcome(FULL), PipelineModel)


@given(path=st.sampled_from(places(FULL)), new=values)
def test_any_value_anywhere_is_a_pipeline_or_one_sentence(path, new):
    found = outcome(changed(path, new))
    assert isinstance(found, PipelineModel) or found.startswith("all.yaml")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name: &a [*a]", "a part of the file contains itself"),
        ("name: " + "[" * 5000, "this is not YAML: it is nested too deeply"),
        ("name: !!int x", "1: 'x' cannot be read"),
        ("name: !!python/name:os.system x", "1: 'x' cannot be read"),
        ("- name", "1: the file must be a mapping"),
        ("", "1: the file must be a mapping"),
        ("a: 1\n---\nb: 1", "2: this is not YAML"),
    ],
)
def test_what_yaml_allows_and_a_pipeline_cannot_have_is_one_sentence(text, error):
    with pytest.raises(PipelineError) as raised:
        parse(text, "all.yaml", {})
    assert str(raised.value).startswith(f"all.yaml:{error if error[0].isdigit() else ' ' + error}")


@pytest.mark.parametrize("new", [None, 5, True, [], {}, "", [None], {"a": None}, [{}], "("], ids=repr)
def test_usual_slips_in_every_place_are_one_sentence(new):
    for path in places(FULL):
        found = outcome(changed(path, new))
        assert isinstance(found, PipelineModel) or found.startswith("all.yaml"), path
