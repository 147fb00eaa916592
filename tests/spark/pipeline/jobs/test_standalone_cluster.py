"""The same pipeline files on local[2] and on a standalone cluster, a master and two workers as processes.

Seven JVMs: run by `make long`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.testing import Cluster
from spark.pipeline.conftest import EXAMPLES
from spark.pipeline.driver.test_transform_with_state import PIPELINE as TOTALS
from spark.pipeline.terminal import a_terminal
from spark.standalone import LOCAL, standalone_cluster

pytestmark = pytest.mark.long


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[tuple[str, list[Path]]]:
    """The address of a master with two workers of one core, and the directories in which these work."""
    with standalone_cluster(tmp_path) as found:
        yield found


def test_a_file_has_the_same_results_on_local_and_on_a_cluster(standalone, tmp_path):
    master, works = standalone
    orders = (EXAMPLES / "sample/orders.jsonl").read_bytes().splitlines()
    amounts = [b'{"customer": "c%d", "amount": %d}' % (number % 10, number) for number in range(500)]
    results = []
    with Cluster(process=True) as cluster:
        librdkafka = Librdkafka(cluster.bootstrap)
        for topic, values in (("orders", orders), ("amounts", amounts)):
            librdkafka.create_topic(topic, partitions=2)
            librdkafka.produce(topic, [Record(value) for value in values])
        for number, chosen in enumerate(("local[2]", master)):
            directory = tmp_path / f"pipelines{number}"
            shutil.copytree(EXAMPLES, directory)
            (directory / "totals.py").write_text(TOTALS.format(bootstrap=cluster.bootstrap, topic="amounts"))
            with a_terminal(directory, BROKERS=cluster.bootstrap, **LOCAL) as terminal:
                for file in ("archive.yaml", "totals.py"):
                    code, _, errors = terminal.run("run", file, "--available-now", "--master", chosen)
                    assert code == 0, errors
                assert terminal.status("archive").master == chosen
            results.append((rows(directory / "output/orders"), rows(directory / "out")))
    assert results[0] == results[1]
    assert [len(found) for found in results[1]] == [40, 10]
    # Each worker had an executor of each run.
    assert [len(list(work.glob("app-*/*/stderr"))) for work in works] == [2, 2]


def rows(directory: Path) -> list[dict[str, Any]]:
    return sorted(pyarrow.parquet.read_table(directory).to_pylist(), key=str)
