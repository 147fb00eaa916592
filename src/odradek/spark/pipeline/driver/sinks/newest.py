"""Which rows of a micro-batch replace others: the newest of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PLACE = "_odradek_place"


def newest_rows(rows: DataFrame, key: Sequence[str], order_by: Sequence[str]) -> DataFrame:
    """One row of each key, the greatest by `order_by`; a null counts as a key, and as less than any value."""
    newest_first = Window.partitionBy(*map(column, key)).orderBy(*(column(name).desc() for name in order_by))
    return rows.withColumn(_PLACE, F.row_number().over(newest_first)).filter(f"{_PLACE} = 1").drop(_PLACE)


def column(name: str) -> Column:
    """The column of this name, which may have dots in it."""
    return F.col(f"`{name}`")
