"""Options and Java are checked before Spark starts."""

from __future__ import annotations

import pytest

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.yaml_file import parse
from odradek.spark.pipeline.running.preflight import check_options

TEXT = """\
name: copy
sources:
  orders:
    topic: orders
    options: {maxRecordsPerPartition: 100}
sinks:
  copies:
    from: orders
    topic: copies
    format: none
    options: {includeTimestamp: true}
"""


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("maxRecordsPerPartition: 100", "startingOffset: latest", "5: unknown option 'startingoffset'"),
        ("maxRecordsPerPartition: 100", "failOnDataLoss: maybe", "5: the option failOnDataLoss is 'maybe'"),
        ("maxRecordsPerPartition: 100", "kafka.fetch.min.byte: 1", "5: an option that begins with kafka. is"),
        ("includeTimestamp: true", "delivery: twice", "11: the option delivery is 'twice'"),
        ("includeTimestamp: true", "kafka.ack: all", "11: an option that begins with kafka. is wrong"),
    ],
)
def test_a_wrong_option_is_named_with_its_line(old, new, error):
    check_options(parse(TEXT, "copy.yaml", {}))
    with pytest.raises(PipelineError) as raised:
        check_options(parse(TEXT.replace(old, new), "copy.yaml", {}))
    assert str(raised.value).startswith(f"copy.yaml:{error}")


def test_options_of_the_official_connector_are_left_to_it():
    check_options(parse(f"connector: kafka\n{TEXT.replace('maxRecords', 'kafkaRecords')}", "copy.yaml", {}))
