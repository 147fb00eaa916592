"""Compaction: keeps the last value of each key and removes the others."""
