"""Records out: batches per partition, a sender that keeps order, futures that tell where records went."""
