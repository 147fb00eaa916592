"""A program with one exactly-once query, which it starts again when it fails; it ends when all is written.

python query_program.py BOOTSTRAP foreach-batch|data-source SOURCE TARGET CHECKPOINT [MASTER]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

ATTEMPTS = 20


def main(
    bootstrap: str, form: str, source: str, target: str, checkpoint: str, master: str = "local[2]"
) -> int:
    from pyspark.sql import SparkSession

    from odradek.spark import exactly_once, register

    builder = SparkSession.builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.default.parallelism": "4",
        "spark.local.dir": str(Path.cwd() / "spark-local"),
        "spark.executorEnv.ODRADEK_SPARK_HOOK": os.environ["ODRADEK_SPARK_HOOK"],
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    servers = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format("odradek").options(**servers).option("subscribe", source)
    reader = reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="100")
    frame = reader.load().select("key", "value")

    def start() -> Any:
        writer = frame.writeStream.queryName(target).option("checkpointLocation", checkpoint)
        if form == "foreach-batch":
            writer = writer.foreachBatch(exactly_once({**servers, "topic": target}))
        else:
            writer = writer.format("odradek").options(**servers).option("topic", target)
        return writer.trigger(availableNow=True).start()

    for _ in range(ATTEMPTS):
        query = start()
        try:
            query.awaitTermination()
        except Exception as error:  # Spark raises the query's
            print(f"the query failed: {str(error)[-2000:]}", file=sys.stderr, flush=True)
        else:
            print("done", flush=True)
            return 0
    return 1


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
