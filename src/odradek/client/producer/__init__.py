"""The producer: batches per partition, a sender that keeps order, futures with the offsets of records."""
