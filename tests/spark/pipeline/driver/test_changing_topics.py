"""Topics that change under a pipeline: partitions are added while it runs, records go unread."""

from __future__ import annotations

import json

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.client.producer.producer import Producer
from odradek.spark.pipeline.driver.failures import failure_of
from spark.pipeline.terminal import until
from spark.source.test_bad_input import damage_last_byte

PIPELINE = """\
name: copy
bootstrap: {bootstrap}
sources:
  orders: {{topic: {topic}, format: json, schema: {{id: bigint}}, data_loss: {data_loss}}}
sinks:
  files: {{from: orders, parquet: out}}
"""


def orders(numbers: range) -> list[Record]:
    return [Record(json.dumps({"id": number}).encode()) for number in numbers]


@pytest.fixture
def librdkafka(bootstrap, topic):
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic)
    return librdkafka


@pytest.fixture
def write(runner, bootstrap, topic):
    def written(data_loss: str = "stop") -> None:
        text = PIPELINE.format(bootstrap=bootstrap, topic=topic, data_loss=data_loss)
        runner.write("copy.yaml", text)

    return written


def test_a_partition_that_is_added_while_a_pipeline_runs_is_read_from_its_first_record(
    runner, write, librdkafka, bootstrap, topic
):
    librdkafka.produce(topic, orders(range(10)))
    ends: dict[str, int] = {}

    def order(event):
        if event["event"] != "progress":
            return None
        ends.update(event["offsets"]["orders"])
        if ends == {f"{topic}-0": 10}:
            librdkafka.add_partitions(topic, 3)
            with Producer(bootstrap_servers=bootstrap) as producer:
                for number in range(10, 30):
                    producer.send(topic, b'{"id": %d}' % number, partition=1 + number % 2)
        return "stop" if sum(ends.values()) == 30 else None

    write()
    runner.order_after = order
    runner.run("copy.yaml", trigger="always")
    assert ends == {f"{topic}-0": 10, f"{topic}-1": 10, f"{topic}-2": 10}
    assert sorted(row.id for row in runner.parquet("out")) == list(range(30))


def test_records_that_go_before_they_are_read_stop_a_pipeline_or_are_passed(runner, write, librdkafka, topic):
    librdkafka.produce(topic, orders(range(10)))
    write()
    runner.run("copy.yaml")
    librdkafka.produce(topic, orders(range(10, 30)))
    librdkafka.delete_records(topic, 20)

    with pytest.raises(Exception, match="failOnDataLoss") as stopped:
        runner.run("copy.yaml")
    failure = failure_of(stopped.value)
    assert failure.is_permanent
    assert failure.sentence.startswith("records that the checkpoint has not read yet are gone")
    assert "set `data_loss: continue` to go on with what is there" in failure.sentence
    assert f"offsets 10 to 30 of {topic}-0" in failure.sentence

    write("continue")
    runner.run("copy.yaml")
    assert sorted(row.id for row in runner.parquet("out")) == [*range(10), *range(20, 30)]


@pytest.mark.long
def test_a_topic_that_was_created_again_stops_a_pipeline_or_is_read_from_its_first_record(
    runner, write, librdkafka, topic
):
    librdkafka.produce(topic, orders(range(10)))
    write()
    runner.run("copy.yaml")
    librdkafka.delete_topic(topic)
    until(lambda: topic not in librdkafka.topics())
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, orders(range(100, 104)))

    with pytest.raises(Exception, match="made anew") as stopped:
        runner.run("copy.yaml")
    assert failure_of(stopped.value).is_permanent
    write("continue")
    runner.run("copy.yaml")
    assert sorted(row.id for row in runner.parquet("out")) == [*range(10), *range(100, 104)]


def test_a_damaged_batch_stops_a_pipeline_for_good_and_is_named(runner, write, librdkafka, cluster, topic):
    librdkafka.produce(topic, orders(range(10)))
    librdkafka.produce(topic, orders(range(10, 20)))
    damage_last_byte(cluster.data_dir, topic, b'{"id": 19}')
    write()
    with pytest.raises(Exception, match="odradek") as stopped:
        runner.run("copy.yaml")
    failure = failure_of(stopped.value)
    assert failure.is_permanent
    assert failure.sentence.startswith(f"the batch at offset 10 of {topic}-0 is damaged: its CRC is wrong")
    assert runner.events[-1] == {"event": "query_failed", "query": "files"}
