"""The process that runs a pipeline on Spark: session, DataFrames, queries, checkpoints, failures."""
