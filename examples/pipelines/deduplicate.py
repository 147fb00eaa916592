"""Each order once: what is sent again within an hour is left out."""

import os

from odradek.spark.pipeline import Pipeline, to_topic, topic


def unique(orders):
    """The first record of each order; the state keeps an order's number for an hour."""
    return orders.dropDuplicatesWithinWatermark(["order_id"])


pipeline = Pipeline(
    "deduplicate",
    bootstrap=os.environ.get("BROKERS", "localhost:9092"),
    sources=[
        topic(
            "orders",
            format="json",
            schema="order_id bigint not null, customer string, amount double, at timestamp",
            watermark=("at", "1 hour"),
            bad_records="drop",
        )
    ],
    steps=[unique],
    sinks=[to_topic("orders-unique", source="unique")],
)
