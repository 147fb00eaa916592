"""Topics become DataFrames: `spark.read` and `spark.readStream` with format("odradek")."""
