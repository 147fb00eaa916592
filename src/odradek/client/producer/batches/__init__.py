"""Records on their way into batches: partitioning, serialization, accumulation."""
