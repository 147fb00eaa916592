"""Raw records become typed columns; what does not fit is dropped, stops the query or is a dead letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

from odradek.spark.pipeline.definition.model import Schema, TopicSource
from odradek.spark.pipeline.definition.types import ddl
from odradek.spark.pipeline.driver.decoding.bad_records import reason
from odradek.spark.pipeline.driver.decoding.decoders import decoder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OWN = ("key", "topic", "partition", "offset", "timestamp")
_HEADERS = "array<struct<key: string, value: binary>>"
_OWN_TYPES = {
    "key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": _HEADERS,
}
BAD_RECORD = "odradek: bad record"
"""Begins the error of a query that stops at a bad record."""


def decoded(raw: DataFrame, source: TopicSource) -> DataFrame:
    """The columns of the schema and of the record, of the records that fit."""
    schema = source.schema
    if schema.format == "none":
        return raw
    if schema.format == "text":
        text = F.col("value").cast("string").alias("value")
        return raw.select(text, *_own_columns())
    otherwise = F.lit(False)
    if source.bad_records == "stop":
        otherwise = F.raise_error(_place_and_reason(schema)).cast("boolean")
    good = F.when(F.col("_error").isNull(), _here()).otherwise(otherwise)
    return _parsed(raw, schema, _OWN).filter(good).drop("_error", "_value")


def dead_letters(raw: DataFrame, source: TopicSource) -> DataFrame:
    """The records that do not fit: as they were, and with headers that say where they were and why."""
    bad = _parsed(raw, source.schema, (*_OWN, "headers")).filter(F.when(F.col("_error").isNotNull(), _here()))
    headers = {
        "odradek.topic": F.col("_topic"),
        "odradek.partition": F.col("_partition"),
        "odradek.offset": F.col("_offset"),
        "odradek.timestamp": F.unix_millis("_timestamp"),
        "odradek.error": _reason(source.schema),
    }
    rows = [
        F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in headers.items()
    ]
    key, value = F.col("_key").alias("key"), F.col("_value").alias("value")
    before = F.coalesce(F.col("_headers"), F.array().cast(_HEADERS))
    return bad.select(key, value, F.concat(before, F.array(*rows)).alias("headers"))


def _here() -> Column:
    """True, by an expression that Spark takes for one that changes from call to call.

    A filter that has it stays alone. Otherwise Spark may join it with conditions of later steps, and ask some
    of them first: a bad record has no id, so that `id > 0` would pass over it. A column that has it keeps
    filters above it. Otherwise Spark moves them below, and decodes again for each mention of a column.
    """
    return F.spark_partition_id() >= 0


def _own_columns(own: Sequence[str] = _OWN) -> list[Column]:
    return [F.col(name).alias(f"_{name}") for name in own]


def _parsed(raw: DataFrame, schema: Schema, own: Sequence[str]) -> DataFrame:
    """All records: fields, own columns, `_value`, and `_error` where a record does not fit."""
    if schema.format == "json":
        return _parsed_json(raw, schema, own)
    own_ddl = ", ".join(f"`_{name}` {_OWN_TYPES[name]}" for name in own)
    output = f"{ddl(schema.fields)}, {own_ddl}, `_error` string, `_value` binary"
    wanted = StructType.fromDDL(output.replace(" NOT NULL", ""))
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    function = decoder(schema, to_arrow_schema(wanted, timezone="UTC"))
    return raw.select("value", *own).mapInArrow(function, wanted)


def _parsed_json(raw: DataFrame, schema: Schema, own: Sequence[str]) -> DataFrame:
    """Parse a value as the only element of an array, because Spark reads no further than the end of a value.

    {"_values": [VALUE], "_end": 0, "_corrupt": null}: what comes after a value is a second element, an error
    in the array, or hides `_end`, unless it was written to look like this.
    """
    wanted = StructType().add("_values", ArrayType(StructType.fromDDL(ddl(schema.fields))))
    wanted = wanted.add("_end", IntegerType()).add("_corrupt", StringType())
    wrapped = F.concat(F.lit('{"_values":['), _text(F.col("value"), schema), F.lit('],"_end":0}'))
    found = F.from_json(wrapped, wanted, {"columnNameOfCorruptRecord": "_corrupt"})
    rows = raw.select(found.alias("_found"), F.col("value").alias("_value"), *_own_columns(own))
    one = F.get(F.col("_found._values"), 0)
    misfits = (
        F.col("_found").isNull()
        | F.col("_found._corrupt").isNotNull()
        | F.col("_found._end").isNull()
        | (F.size("_found._values") != 1)
        | one.isNull()
        | ~F.is_valid_utf8(_text(F.col("_value"), schema))
    )
    for field in schema.fields:
        if not field.nullable:
            misfits = misfits | one[field.name].isNull()
    error = F.when(F.col("_value").isNotNull() & _here() & misfits, F.lit("does not fit"))
    columns = [one[field.name].alias(field.name) for field in schema.fields]
    return rows.select(*columns, *(f"_{name}" for name in own), error.alias("_error"), "_value")


def _text(value: Column, schema: Schema) -> Column:
    if schema.skip_bytes:
        value = F.substring(value, schema.skip_bytes + 1, 2**31 - 1)
    return value.cast("string")


def _reason(schema: Schema) -> Column:
    """Why a record does not fit; asked only for those."""
    if schema.format != "json":
        return F.col("_error")
    wanted = StructType.fromDDL(ddl(schema.fields)).jsonValue()
    skip = schema.skip_bytes

    def why(value: bytes | None) -> str:
        return reason(None if value is None else bytes(value)[skip:], wanted)

    return F.udf(why, "string", useArrow=False)(F.col("_value"))


def _place_and_reason(schema: Schema) -> Column:
    """The message of the error that stops a query. No Python here: it would be called for every record."""
    why = F.col("_error") if schema.format != "json" else F.left(F.col("_value").cast("string"), F.lit(200))
    return F.concat(
        F.lit(f"{BAD_RECORD} in "),
        F.col("_topic"),
        F.lit(", partition "),
        F.col("_partition").cast("string"),
        F.lit(", offset "),
        F.col("_offset").cast("string"),
        F.lit(": "),
        why,
    )
