"""The snapshot sink: the newest row of each key, as a directory of Parquet files that is replaced as a whole.

    PATH/version=000000000012/     the files after micro-batch 12
    PATH/current                   a symbolic link to the newest version, moved atomically

A micro-batch that is repeated after a crash begins from the version before it, so that no row counts twice.
The version before the current one stays for readers that have just opened it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from odradek.spark.pipeline.definition.model import SnapshotSink
from odradek.spark.pipeline.driver.sinks.newest import newest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VERSION = re.compile(r"version=(\d{12})\Z")
_IS_NEW = "_odradek_is_new"
CURRENT = "current"


def snapshot_writer(sink: SnapshotSink) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch."""

    def write(rows: DataFrame, batch_id: int) -> None:
        directory = Path(sink.path)
        done = current_version(directory)
        if done is not None and done >= batch_id:
            return
        merged = rows if sink.mode == "complete" else _merged(rows, directory, done, sink)
        target = directory / f"version={batch_id:012d}"
        merged.write.mode("overwrite").parquet(str(target))
        _publish(directory, target.name)
        _remove_old(directory, keep=(target.name, "" if done is None else f"version={done:012d}"))

    return write


def current_version(directory: Path) -> int | None:
    """The micro-batch whose result is current."""
    try:
        found = _VERSION.search(os.readlink(directory / CURRENT))
    except FileNotFoundError:
        return None
    return int(found.group(1)) if found else None


def _merged(rows: DataFrame, directory: Path, done: int | None, sink: SnapshotSink) -> DataFrame:
    """The newest row of each key, of the last version and the micro-batch; of equal ones the micro-batch's.

    Rows without a key have one key, null.
    """
    candidates = rows.withColumn(_IS_NEW, F.lit(True))
    if done is not None:
        before = rows.sparkSession.read.schema(rows.schema).parquet(str(directory / f"version={done:012d}"))
        candidates = before.withColumn(_IS_NEW, F.lit(False)).unionByName(candidates)
    merged = newest_rows(candidates, sink.key, (*sink.order_by, _IS_NEW)).drop(_IS_NEW)
    if sink.delete_when:
        merged = merged.filter(f"NOT coalesce(({sink.delete_when}), false)")
    return merged


def _publish(directory: Path, version: str) -> None:
    link = directory / f".{CURRENT}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(version)
    os.replace(link, directory / CURRENT)


def _remove_old(directory: Path, keep: tuple[str, ...]) -> None:
    for one in directory.iterdir():
        if _VERSION.match(one.name) and one.name not in keep:
            shutil.rmtree(one, ignore_errors=True)
