"""Metrics: counters, names, and the Prometheus exposition."""
