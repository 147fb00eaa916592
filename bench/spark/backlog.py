"""A large backlog through `odradek pipeline run --available-now` with a limit: memory is flat, exit code 0.

Runs itself again in .venv-spark. `python bench/spark/backlog.py [ROWS [LIMIT]]`: a table of the memory that
the driver's Python, its JVM and the Python workers have, for each tenth of the backlog.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
PARTITIONS = 4
PARTS = 10
MIB = 1 << 20


def main(rows: int, limit: int) -> int:
    sys.path[:0] = [str(Path(__file__).parent)]
    import pyarrow.parquet
    from archive import FILE
    from place import ORDERS, fill_orders
    from rich.console import Console
    from rich.table import Table

    from odradek.testing import Cluster

    console = Console(width=110)
    table = Table("rows read", "Python of the driver, MiB", "JVM, MiB", "workers, MiB", "most of all, MiB")
    with Cluster({"log.retention.ms": -1}, process=True) as cluster, tempfile.TemporaryDirectory() as scratch:
        console.print(f"writing {rows:,} orders")
        fill_orders(cluster.bootstrap, rows, PARTITIONS)
        file = Path(scratch, "archive.yaml")
        file.write_text(FILE.format(bootstrap=cluster.bootstrap, topic=ORDERS, limit=limit))
        command = [sys.executable, "-m", "odradek.cli.main", "pipeline", "run", str(file)]
        process = subprocess.Popen(
            [*command, "--available-now", "--master", "local[2]", "-o", "json"],
            env={**os.environ, "ODRADEK_PIPELINE_STATE": f"{scratch}/state"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        read, most, next_part = 0, 0, 0
        for line in process.stdout:
            event = json.loads(line)
            read += int(event["rows_in"]) if event.get("event") == "progress" else 0
            found = resident(process.pid)
            most = max(most, sum(found))
            if read >= next_part * rows // PARTS and read:
                next_part = read * PARTS // rows + 1
                table.add_row(f"{read:,}", *(f"{size / MIB:,.0f}" for size in (*found, most)))
                console.print(f"{read:,} rows, {sum(found) / MIB:,.0f} MiB")
        code = process.wait()
        written = pyarrow.parquet.read_table(Path(scratch, "output"), columns=["order_id"]).num_rows
    console.print(table)
    console.print(f"exit code {code}, {written:,} of {rows:,} rows written, limit {limit:,}")
    return int(code or written != rows)


def resident(pid: int) -> tuple[int, int, int]:
    """The resident memory of the driver's Python, of its JVM, and of everything that the JVM has started."""
    import psutil

    driver = jvm = workers = 0
    for child in psutil.Process(pid).children(recursive=True):
        try:
            size, words = child.memory_info().rss, child.cmdline()
        except psutil.Error:
            continue
        if words and words[0].endswith("java"):
            jvm += size
        elif any("pipeline.driver.main" in word for word in words):
            driver += size
        else:
            workers += size
    return driver, jvm, workers


if __name__ == "__main__":
    if importlib.util.find_spec("pyspark") is None:
        sys.exit(subprocess.run([str(SPARK_PYTHON), *sys.argv], check=False).returncode)
    rows, limit = [*sys.argv[1:], *["5000000", "100000"][len(sys.argv) - 1 :]]
    sys.exit(main(int(rows), int(limit)))
