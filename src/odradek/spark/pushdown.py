"""A `pushFilters` that a reader can have whether or not Spark pushes filters down.

Spark refuses a reader that defines `pushFilters` while `spark.sql.python.filterPushdown.enabled` is false,
its default, and looks for that at the function behind the bound method. This callable presents the base
class's function there: nothing is refused, and with the setting the filters come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from odradek.spark.row_filter import RowFilter, take_filters

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class PushFilters:
    """Passes the filters that can be taken to `narrow`, and returns the others."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, narrow: Callable[[RowFilter], None]) -> None:
        self._narrow = narrow

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Called once by Spark, before `partitions`."""
        taken, left = take_filters(filters)
        self._narrow(taken)
        return left
