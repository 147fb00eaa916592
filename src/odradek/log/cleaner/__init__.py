"""Compaction: keep the last value of each key, forget the rest."""
