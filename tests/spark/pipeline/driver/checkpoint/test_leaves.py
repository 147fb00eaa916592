"""The streams of a plan are the sources of the pipeline, also where two clusters have one topic name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek import Producer
from odradek.testing import Cluster

TWO_CLUSTERS = """\
name: both
bootstrap: {here}
sources:
  west: {{topic: {topic}, format: text, bootstrap: '{there}', max_offsets_per_trigger: 2}}
  files: {{files: files, format: json, schema: value string, stream: true}}
  east: {{topic: {topic}, format: text}}
transforms:
  all: >
    SELECT value FROM east UNION ALL SELECT value FROM files UNION ALL SELECT value FROM west
    UNION ALL SELECT value FROM east
sinks: {{all: {{from: all, parquet: out}}}}
"""


@pytest.fixture(scope="module")
def there() -> Iterator[str]:
    with Cluster(process=True) as cluster:
        yield cluster.bootstrap


def test_the_lag_of_one_topic_name_in_two_clusters_is_that_of_each(runner, topic, bootstrap, there):
    for servers, count in ((bootstrap, 3), (there, 12)):
        with Producer(bootstrap_servers=servers) as producer:
            for number in range(count):
                producer.send(topic, b"%d" % number)
    (runner.directory / "files").mkdir()
    (runner.directory / "files" / "one.json").write_text('{"value": "a"}')
    runner.write("both.yaml", TWO_CLUSTERS.format(here=bootstrap, there=there, topic=topic))

    runner.order_after = lambda event: "stop" if event["event"] == "lag" else None
    runner.run("both.yaml", "always")

    offsets = [event["offsets"] for event in runner.events if event["event"] == "progress"]
    assert offsets[0] == {"east": {f"{topic}-0": 3}, "west": {f"{topic}-0": 2}}
    lag = next(event["lag"] for event in runner.events if event["event"] == "lag")
    assert set(lag) == {f"east/{topic}-0", f"west/{topic}-0"}
    assert lag[f"east/{topic}-0"] == 0
    assert lag[f"west/{topic}-0"] in range(11)
