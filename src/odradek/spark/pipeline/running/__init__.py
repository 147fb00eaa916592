"""Runs of pipelines as processes: start, restart, stop, progress and status. Spark is not imported here."""
