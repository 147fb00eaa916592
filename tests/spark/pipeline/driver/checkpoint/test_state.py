"""What keeps state, read from Spark's plans and compared with a checkpoint."""

from __future__ import annotations

from odradek.spark.pipeline.driver.checkpoint.state import difference, operators_in

PLAN = """\
~Project [start#1, n#20L]
+- ~Aggregate [window#26-T10000ms, shop#17], [window#26-T10000ms.start AS start#3, shop#17, count(1) AS n#20L]
   +- ~Filter (id#4L > 0)
      +- ~EventTimeWatermark 2a0997bf-9ba0-4a65-86cb-7f9e4c45b51d, at#16: timestamp, 10 seconds
         +- Aggregate [a#1], [max(b#2) AS max(b)#3]
"""
KEPT = {
    "sources": [{"name": "orders", "topics": ["a", "b"], "pattern": None, "path": None, "cluster": "one"}],
    "state": ["Aggregate [shop], [count(1)]"],
    "partitions": 4,
    "mode": "append",
    "kind": "parquet",
    "path": "/out",
}


def test_streaming_operators_are_named_without_ids_and_aliases():
    assert operators_in(PLAN) == ["Aggregate [window, shop], [window.start, shop, count(1)]"]
    renamed = PLAN.replace("#20L", "#99L").replace("AS n", "AS number")
    assert operators_in(renamed) == operators_in(PLAN)
    assert operators_in(PLAN.replace("count(1)", "max(id#4L)")) != operators_in(PLAN)


def test_only_differences_that_matter_are_reasons():
    source = KEPT["sources"][0]
    assert difference(KEPT, KEPT) is None
    assert (
        difference(KEPT, KEPT | {"sources": [source | {"name": "other", "topics": ["a", "b", "c"]}]}) is None
    )
    assert difference(KEPT, KEPT | {"sources": [source | {"topics": ["b"]}]}) == (
        "it has the offsets of a, which the source orders no longer reads"
    )
    assert difference(KEPT, KEPT | {"sources": [source | {"cluster": "two"}]}) == (
        "it has the offsets of the cluster one, and the brokers of the source orders are of the cluster two"
    )
    unknown = {name: one for name, one in source.items() if name != "cluster"}
    assert difference(KEPT | {"sources": [unknown]}, KEPT) is None
    assert difference(KEPT, KEPT | {"sources": []}) == (
        "it has the offsets of 1 sources (orders), and now 0 are read (nothing)"
    )
    assert "and now by nothing" in str(difference(KEPT, KEPT | {"state": []}))
    assert difference(KEPT, KEPT | {"partitions": 8}) == "the state partitions was 4, and is now 8"
    assert difference(KEPT, KEPT | {"kind": "delta"}) == "the kind of sink was parquet, and is now delta"


def test_sources_are_compared_in_the_order_of_their_offsets():
    orders = KEPT["sources"][0]
    clicks = orders | {"name": "clicks", "topics": ["c"]}
    kept = KEPT | {"sources": [], "leaves": [orders, clicks]}

    assert difference(kept, kept) is None
    assert difference(kept, kept | {"sources": [clicks, orders]}) is None  # the order of the file
    assert (
        difference(kept, kept | {"leaves": [orders | {"name": "a", "topics": ["a", "b", "d"]}, clicks]})
        is None
    )
    assert difference(kept, kept | {"leaves": [clicks, orders]}) == (
        "it has the offsets of orders, clicks in this order, and they are now read as clicks, orders"
    )
    assert difference(kept, kept | {"leaves": [orders, clicks, orders]}) == (
        "it has the offsets of 2 sources (orders, clicks), and now 3 are read (orders, clicks, orders)"
    )
    earlier = {name: one for name, one in KEPT.items() if name != "leaves"}
    assert difference(earlier, KEPT | {"leaves": [orders]}) is None
