"""Which delivery an option asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.spark.sink.options import AT_LEAST_ONCE

if TYPE_CHECKING:
    from odradek.spark.sink.delivery import Delivery
    from odradek.spark.sink.options import SinkOptions
    from odradek.spark.sink.rows import RowLayout


def new_delivery(options: SinkOptions, layout: RowLayout) -> Delivery:
    """What a writer of the data source does with rows."""
    if options.delivery == AT_LEAST_ONCE:
        from odradek.spark.sink.delivery import AtLeastOnce  # noqa: PLC0415

        return AtLeastOnce(options, layout)
    from odradek.spark.transactions.by_commit import ExactlyOnceByCommit  # noqa: PLC0415

    return ExactlyOnceByCommit(options, layout)
