"""What a checkpoint and a sink directory allow: going on, or a refusal with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek import Admin
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.load import load
from odradek.spark.pipeline.driver.checkpoint.checkpoints import letter_writers, prepare
from odradek.spark.pipeline.driver.checkpoint.clusters import cluster_ids
from odradek.spark.pipeline.driver.frames import frames_of
from odradek.spark.pipeline.driver.sinks.sinks import planned_queries
from odradek.spark.pipeline.driver.sinks.topic_sinks import PlannedQuery

PIPELINE = """\
name: totals
bootstrap: {bootstrap}
partitions: 2
sources:
  orders:
    topic: {topic}
    format: json
    schema: {{id: bigint not null, shop: string, at: timestamp}}
    watermark: {{column: at, delay: 1 second}}
transforms:
  totals: |
    SELECT window.start AS start, shop, count(*) AS n FROM orders GROUP BY window(at, '1 minute'), shop
sinks:
  files: {{from: totals, parquet: out}}
"""
COPY = """\
name: copy
checkpoint: {checkpoint}
sources: {{orders: {{topic: orders, format: json, schema: id bigint}}}}
sinks:
  files: {{from: orders, {sink}}}
"""


UNION = """\
name: union
checkpoint: {checkpoint}
sources:
  a: {{topic: one}}
  b: {{topic: two}}
transforms:
  both: {sql}
sinks:
  files: {{from: both, parquet: out}}
"""
LETTERS = """\
name: letters
checkpoint: {checkpoint}
sources: {{orders: {{topic: orders, format: json, schema: id bigint, bad_records: dead-letter}}}}
dead_letters: dead
sinks:
  files: {{from: orders, parquet: out}}
"""
COPIES = "  copies: {from: orders, topic: copies}\n"


@pytest.fixture
def text(bootstrap, topic):
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, [Record(b'{"id": 1, "shop": "a", "at": "2026-01-31T12:00:00Z"}')])
    return PIPELINE.format(bootstrap=bootstrap, topic=topic)


def refused_run(runner, text: str) -> PipelineError:
    runner.write("totals.yaml", text)
    with pytest.raises(PipelineError) as refused:
        runner.run("totals.yaml")
    return refused.value


def refusal(runner, text: str) -> str:
    return refused_run(runner, text).sentence


def test_changes_that_keep_the_state_continue_and_others_are_refused(runner, text):
    runner.write("totals.yaml", text)
    runner.run("totals.yaml")

    runner.write("totals.yaml", text.replace("FROM orders", "FROM orders WHERE id > 0"))
    runner.run("totals.yaml")

    assert "its directory has the column n, which" in refusal(runner, text.replace("AS n", "AS number"))
    assert "its state was kept by Aggregate" in refusal(runner, text.replace("count(*)", "max(id)"))
    assert "its state was kept by Aggregate" in refusal(
        runner, text.replace("'1 minute'), shop", "'1 minute')").replace(" shop,", "")
    )
    assert "the state partitions was 2, and is now 3" in refusal(
        runner, text.replace("partitions: 2", "partitions: 3")
    )
    assert "the path was" in refusal(runner, text.replace("parquet: out", "parquet: elsewhere"))
    assert not (runner.directory / "elsewhere").exists()


def prepared_in(directory: Path, spark, text: str, cluster: str | None = None) -> list[PlannedQuery]:
    """What is done before queries start; the cluster is given."""
    file = directory / "copy.yaml"
    file.write_text(text)
    pipeline = load(str(file))
    queries = planned_queries(spark, pipeline, frames_of(spark, pipeline), letter_writers(spark, pipeline))
    prepare(spark, pipeline, queries, {pipeline.bootstrap: cluster})
    return queries


def refused_in(directory: Path, spark, text: str) -> str:
    with pytest.raises(PipelineError) as refused:
        prepared_in(directory, spark, text)
    return refused.value.sentence


def with_a_micro_batch(directory: Path) -> None:
    """The traces of a micro-batch in the checkpoint of the sink files and in its directory."""
    (directory / "checkpoint/files/commits/0").mkdir(parents=True)
    (directory / "out/_spark_metadata").mkdir()
    (directory / "out/_spark_metadata/0").write_text("v1\n")
    (directory / "out/current").mkdir()


def made_by_an_earlier_version(checkpoint: Path) -> None:
    """Take from a checkpoint what earlier versions did not write."""
    description = json.loads((checkpoint / "pipeline.json").read_text())
    del description["letters"]
    for kept in description["queries"].values():
        del kept["leaves"], kept["contents"]
    (checkpoint / "pipeline.json").write_text(json.dumps(description))


def test_offsets_of_another_cluster_are_refused_and_another_address_is_not(spark, tmp_path):
    text = COPY.format(checkpoint=tmp_path / "checkpoint", sink="parquet: out") + "bootstrap: one:9092\n"
    prepared_in(tmp_path, spark, text, "c1")
    prepared_in(tmp_path, spark, text.replace("one:", "elsewhere:"), "c1")
    with pytest.raises(PipelineError, match="it has the offsets of the cluster c1, and the brokers of"):
        prepared_in(tmp_path, spark, text, "c2")
    prepared_in(tmp_path, spark, text, "c1")


def test_the_cluster_of_a_checkpoint_is_the_one_that_the_brokers_name(runner, text, bootstrap):
    runner.write("totals.yaml", text)
    pipeline = load(str(runner.directory / "totals.yaml"))
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert cluster_ids(pipeline) == {bootstrap: admin.describe_cluster().cluster_id}


@pytest.mark.parametrize("sink", ["parquet: out", "snapshot: out, key: id, order_by: id"])
def test_a_directory_belongs_to_one_sink_of_one_checkpoint(spark, tmp_path, sink):
    text = COPY.format(checkpoint=tmp_path / "checkpoint", sink=sink)
    out = tmp_path / "out"

    def prepared(text: str) -> None:
        prepared_in(tmp_path, spark, text)

    def refused(text: str) -> str:
        return refused_in(tmp_path, spark, text)

    prepared(text)
    prepared(text)  # nothing was written yet
    (tmp_path / "checkpoint/files/commits/0").mkdir(parents=True)
    (out / "part-00000-a03d3d3e-1c5f-4f0c-9d8c-3d0a4f8f3c30-c000.snappy.parquet").write_text("rows")
    prepared(text)
    assert len(list(out.iterdir())) == 2

    out.rename(tmp_path / "moved")
    gone = refused(text)
    assert f"the directory {out} is gone, and by the checkpoint {tmp_path}/checkpoint/files its rows" in gone
    (tmp_path / "moved").rename(out)
    prepared(text)

    renamed = refused(text.replace("  files:", "  others:"))
    assert f"{out} has rows of the sink files, and rows of others would be missing: empty it" in renamed
    (tmp_path / "checkpoint/files").rename(tmp_path / "removed")
    assert "files is gone, and new rows would be missing: empty it, or bring that back" in refused(text)
    assert len(list(out.iterdir())) == 2


DAMAGE = ["", "{", "null", "[]", '{"pipeline": "copy"}', b"\xff"]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", ["checkpoint/pipeline.json", "out/_odradek.json"])
def test_a_damaged_description_is_refused_with_what_to_do(spark, tmp_path, file, damage):
    text = COPY.format(checkpoint=tmp_path / "checkpoint", sink="parquet: out")
    prepared_in(tmp_path, spark, text)
    (tmp_path / file).write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with pytest.raises(PipelineError, match=rf"copy.yaml:\d: the file \S+{file} is damaged: bring back"):
        prepared_in(tmp_path, spark, text)


@pytest.mark.parametrize("directory", ["out", "checkpoint"])
@pytest.mark.parametrize("parent", ["", "/below"])
def test_a_file_in_place_of_a_directory_is_refused(spark, tmp_path, directory, parent):
    (tmp_path / directory).write_text("a file")
    names = {"out": "out", "checkpoint": str(tmp_path / "checkpoint")}
    names[directory] += parent
    text = COPY.format(checkpoint=names["checkpoint"], sink=f"parquet: {names['out']}")
    with pytest.raises(
        PipelineError, match=rf"copy.yaml:\d: the directory \S+ cannot be used, as \S+{directory} is a file"
    ):
        prepared_in(tmp_path, spark, text)
    assert (tmp_path / directory).read_text() == "a file"


@pytest.mark.parametrize("is_earlier", [False, True], ids=["now", "earlier"])
def test_the_order_and_number_of_the_streams_stay(spark, tmp_path, is_earlier):
    a, b = "SELECT value FROM a", "SELECT value FROM b"

    def union(*parts: str) -> str:
        return UNION.format(checkpoint=tmp_path / "checkpoint", sql=" UNION ALL ".join(parts))

    text = union(a, b)
    prepared_in(tmp_path, spark, text)
    if is_earlier:
        made_by_an_earlier_version(tmp_path / "checkpoint")
    prepared_in(tmp_path, spark, text)
    assert "it has the offsets of a, b in this order, and they are now read as b, a" in refused_in(
        tmp_path, spark, union(b, a)
    )
    assert "it has the offsets of 2 sources (a, b), and now 3 are read (a, b, a)" in refused_in(
        tmp_path, spark, union(a, b, a)
    )
    # The order in the file is another thing, and so are names.
    first, second = "  a: {topic: one}\n", "  b: {topic: two}\n"
    prepared_in(tmp_path, spark, text.replace(first + second, second + first))
    prepared_in(tmp_path, spark, text.replace("  a:", "  c:").replace("FROM a", "FROM c"))


def test_the_order_that_is_kept_is_that_of_sparks_offsets(runner, bootstrap, topic):
    for name in ("one", "two"):
        Librdkafka(bootstrap).create_topic(f"{topic}-{name}")
        Librdkafka(bootstrap).produce(f"{topic}-{name}", [Record(b"{}")])
    (runner.directory / "lines").mkdir()
    (runner.directory / "lines/a.json").write_text('{"value": "1"}')
    files = "  f: {files: lines, format: json, schema: value string, stream: true}\n"
    table = f"  t: {{topic: {topic}-one, table: true}}\n"
    sql = (
        "WITH x AS (SELECT value FROM b) SELECT value FROM x UNION ALL SELECT CAST(value AS BINARY) FROM f"
        " UNION ALL SELECT a.value FROM t JOIN a ON a.value = t.value UNION ALL SELECT value FROM x"
        " UNION ALL SELECT value FROM b"
    )
    text = UNION.format(checkpoint="checkpoint", sql=sql) + f"bootstrap: {bootstrap}\n"
    text = text.replace("topic: one", f"topic: {topic}-one").replace("topic: two", f"topic: {topic}-two")
    runner.write("union.yaml", text.replace("transforms:", f"{files}{table}transforms:"))
    runner.run("union.yaml")

    kept = json.loads((runner.directory / "checkpoint/pipeline.json").read_text())["queries"]["files"]
    (_, _, *offsets) = (runner.directory / "checkpoint/files/offsets/0").read_text().splitlines()
    subjects = [(one["topics"] or ["logOffset"])[0] for one in kept["leaves"]]
    assert subjects == [f"{topic}-two", "logOffset", f"{topic}-one", f"{topic}-two"]
    assert [next(iter(json.loads(line))) for line in offsets] == subjects


@pytest.mark.parametrize("sink", ["parquet: out", "snapshot: out, key: id, order_by: id"])
def test_a_directory_takes_new_columns_and_no_others_in_their_place(spark, tmp_path, sink):
    text = COPY.format(checkpoint=tmp_path / "checkpoint", sink=sink)
    text = text.replace("schema: id bigint", "schema: 'id bigint, city string'")
    prepared_in(tmp_path, spark, text)
    prepared_in(tmp_path, spark, text.replace("city string", "town string"))  # nothing was written yet
    prepared_in(tmp_path, spark, text)
    with_a_micro_batch(tmp_path)
    prepared_in(tmp_path, spark, text.replace("city string", "city string, n int"))
    assert "its directory has the column n, which is no longer there. Undo the change" in refused_in(
        tmp_path, spark, text
    )
    assert "its directory has the column city, which is no longer there" in refused_in(
        tmp_path, spark, text.replace("city string", "town string, n int")
    )
    assert "the column id in its directory is of the type bigint, and is now int" in refused_in(
        tmp_path, spark, text.replace("id bigint, city string", "id int, city string, n int")
    )
    made_by_an_earlier_version(tmp_path / "checkpoint")
    prepared_in(tmp_path, spark, text)


def test_files_keep_their_partitions(spark, tmp_path):
    text = COPY.format(checkpoint=tmp_path / "checkpoint", sink="parquet: out")
    prepared_in(tmp_path, spark, text)
    with_a_micro_batch(tmp_path)
    assert "the files in its directory are by partition_by nothing, and now by _partition" in refused_in(
        tmp_path, spark, text.replace("parquet: out", "parquet: out, partition_by: _partition")
    )


@pytest.mark.parametrize("is_earlier", [False, True], ids=["now", "earlier"])
def test_dead_letters_stay_with_the_query_that_wrote_them(spark, tmp_path, is_earlier):
    alone = LETTERS.format(checkpoint=tmp_path / "checkpoint")
    assert [query.name for query in prepared_in(tmp_path, spark, alone)] == ["files", "dead_letters_orders"]
    if is_earlier:
        made_by_an_earlier_version(tmp_path / "checkpoint")
    queries = prepared_in(tmp_path, spark, alone + COPIES)
    assert [query.name for query in queries] == ["files", "copies", "dead_letters_orders"]
    assert not any(query.letters for query in queries)


@pytest.mark.parametrize("is_earlier", [False, True], ids=["now", "earlier"])
def test_a_sink_that_wrote_dead_letters_goes_on_with_them_or_the_change_is_refused(
    spark, tmp_path, is_earlier
):
    text = LETTERS.format(checkpoint=tmp_path / "checkpoint")
    prepared_in(tmp_path, spark, text + COPIES)
    if is_earlier:
        made_by_an_earlier_version(tmp_path / "checkpoint")
    before_it = COPIES.replace("copies", "first")
    queries = prepared_in(tmp_path, spark, text + before_it + COPIES)
    assert {query.name: len(query.letters) for query in queries} == {"files": 0, "first": 0, "copies": 1}
    error = "the dead letters of orders were written by the sink copies, which does not write them any more"
    assert error in refused_in(tmp_path, spark, text)
    assert error in refused_in(tmp_path, spark, text + before_it)
    at_least_once = COPIES.replace("}", ", options: {delivery: at-least-once}}")
    assert error in refused_in(tmp_path, spark, text + at_least_once)


def test_directories_of_others_are_refused(runner, text):
    (runner.directory / "out").mkdir()
    (runner.directory / "out/mine.txt").write_text("mine")
    assert "is not empty, and this pipeline did not write it" in refusal(runner, text)
    assert not (runner.directory / "totals.checkpoint/pipeline.json").exists()

    (runner.directory / "out/mine.txt").unlink()
    runner.write("totals.yaml", text)
    runner.run("totals.yaml")
    other = text.replace("name: totals", "name: totals\ncheckpoint: another")
    assert "has rows of another checkpoint, and they would be there twice" in refusal(runner, other)
    stranger = text.replace("name: totals", "name: other\ncheckpoint: totals.checkpoint")
    assert "is of the pipeline totals" in refusal(runner, stranger)


def test_a_bad_record_stops_a_pipeline_that_says_so(runner, text, bootstrap, topic):
    from odradek.spark.pipeline.driver.failures import failure_of

    Librdkafka(bootstrap).produce(topic, [Record(b"no order")])
    runner.write("totals.yaml", text)
    with pytest.raises(Exception, match="bad record") as stopped:
        runner.run("totals.yaml")
    failure = failure_of(stopped.value)
    assert failure.is_permanent
    assert failure.sentence.startswith(
        f"odradek: bad record in {topic}, partition 0, offset 1: no order. Correct"
    )


def test_what_sql_gets_wrong_is_named_with_the_line(runner, text):
    text = text.replace(" FROM orders", "\n    FROM orders\n   ")
    line = text[: text.index("  totals: |")].count("\n") + 1
    place = f"{runner.directory}/totals.yaml:{line}: "

    wrong = str(refused_run(runner, text.replace("'1 minute'), shop", "'1 minute'), shopp")))
    assert wrong.startswith(place)
    assert "`shopp` cannot be resolved" in wrong
    assert wrong.endswith(" (line 3 of the SQL)")

    wrong = str(refused_run(runner, text.replace("GROUP BY", "GRUOP BY")))
    assert wrong.startswith(f"{place}Syntax error")
    assert wrong.endswith(" (line 3 of the SQL)")
