"""Log directories become DataFrames, without a broker: `spark.read` with format("odradek-segments")."""
