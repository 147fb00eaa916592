"""Sessions of clicks by user: 30 minutes without a click end one; clicks may come 10 minutes late."""

import os

from odradek.spark.pipeline import Pipeline, to_parquet, topic


def sessions(clicks):
    """One row a session, written when the watermark says that it cannot grow any more."""
    from pyspark.sql import functions as f

    grouped = clicks.groupBy("user", f.session_window("at", "30 minutes").alias("session"))
    counted = grouped.agg(f.count("*").alias("clicks"), f.min("at").alias("first"), f.max("at").alias("last"))
    return counted.select("user", "clicks", "first", "last")


pipeline = Pipeline(
    "sessions",
    bootstrap=os.environ.get("BROKERS", "localhost:9092"),
    sources=[
        topic(
            "clicks",
            format="json",
            schema="user string, page string, at timestamp",
            watermark=("at", "10 minutes"),
            bad_records="drop",
        )
    ],
    steps=[sessions],
    sinks=[to_parquet("output/sessions", source="sessions")],
)
