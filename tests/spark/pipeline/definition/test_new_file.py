"""New files of any topic can be read."""

from __future__ import annotations

import pytest

from odradek.spark.pipeline.definition.load import load
from odradek.spark.pipeline.definition.new_file import python_text, yaml_text
from odradek.spark.pipeline.definition.types import Field

FIELDS = (Field("id", "bigint"), Field('a "b"', "struct<`c d`: string>"), Field("é", "int"))


@pytest.mark.parametrize("fields", [None, FIELDS], ids=["raw", "fields"])
@pytest.mark.parametrize("topic", ["orders", "2024-orders", "123", "null", "class", "result", "a.b", "on"])
def test_a_new_file_of_any_topic_is_a_pipeline(tmp_path, topic, fields):
    for text, suffix in ((yaml_text, "yaml"), (python_text, "py")):
        file = tmp_path / f"new.{suffix}"
        file.write_text(text("2024", str(file), topic, "localhost:9092", fields), encoding="utf-8")
        (source,) = load(str(file)).sources
        assert source.topics == (topic,)
        assert source.schema.fields == (fields or ())
