"""Background work of a broker: retention, flushing, compaction, moves, metrics."""
