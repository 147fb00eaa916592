"""One pipeline file on one core, on two, and on a standalone cluster of two workers with one core each.

Runs itself again in .venv-spark. `python bench/spark/scaling.py [ROWS [ROUNDS]]`: a table of the seconds of
`odradek pipeline run --available-now`, the start of Spark included, and of rows/s. The broker, the driver and
the workers share this machine's cores; the figures go to bench/results/spark_scaling.json.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
PARTITIONS = 4
ROWS_A_BATCH = 500_000
MEASURED_ROWS = 1_000_000


def main(rows: int, rounds: int) -> int:
    sys.path[:0] = [str(BENCH), str(ROOT / "tests"), str(Path(__file__).parent)]
    from archive import FILE
    from place import ORDERS, fill_orders
    from rich.console import Console
    from rich.table import Table

    import results
    from odradek.testing import Cluster
    from spark.standalone import standalone_cluster

    console = Console(width=110)
    settings = {"log.retention.ms": -1}
    with Cluster(settings, process=True) as cluster, tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        console.print(f"writing {rows:,} orders")
        fill_orders(cluster.bootstrap, rows, PARTITIONS)
        text = FILE.format(bootstrap=cluster.bootstrap, topic=ORDERS, limit=ROWS_A_BATCH)
        seconds: dict[str, list[float]] = {}
        with standalone_cluster(scratch) as (address, _):
            masters = {"local[1]": "local[1]", "local[2]": "local[2]", "two workers": address}
            for number in range(rounds):
                for name, master in masters.items():
                    taken = run_pipeline(text, scratch / "run", master, rows)
                    console.print(f"round {number + 1}, {name}: {taken:.1f} s")
                    seconds.setdefault(name, []).append(taken)
    table = Table("master", "seconds", "rows/s", "of local[1]")
    for name, found in seconds.items():
        taken, one = median(found), median(seconds["local[1]"])
        table.add_row(name, f"{taken:.1f}", f"{rows / taken:,.0f}", f"{one / taken:.2f}")
    console.print(table)
    kept = (results.RESULTS if rows >= MEASURED_ROWS else results.CACHE) / "spark_scaling.json"
    circumstances = results.circumstances(["pyspark", "pyarrow"])
    results.save(kept, {"circumstances": circumstances, "rows": rows, "seconds": seconds})
    return 0


def run_pipeline(text: str, directory: Path, master: str, rows: int) -> float:
    """The seconds of a run from the first record to the last; every row must be in the table."""
    import pyarrow.parquet

    directory.mkdir()
    file = directory / "archive.yaml"
    file.write_text(text)
    environment = {
        **os.environ,
        "ODRADEK_PIPELINE_STATE": str(directory / "state"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-m", "odradek.cli.main", "pipeline", "run", str(file), "--available-now"]
    begin = time.perf_counter()
    subprocess.run(
        [*command, "--master", master, "-o", "json"], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    taken = time.perf_counter() - begin
    assert pyarrow.parquet.read_table(directory / "output", columns=["order_id"]).num_rows == rows
    shutil.rmtree(directory)
    return taken


if __name__ == "__main__":
    if importlib.util.find_spec("pyspark") is None:
        sys.exit(subprocess.run([str(SPARK_PYTHON), *sys.argv], check=False).returncode)
    rows, rounds = [*sys.argv[1:], *["5000000", "3"][len(sys.argv) - 1 :]]
    sys.exit(main(int(rows), int(rounds)))
