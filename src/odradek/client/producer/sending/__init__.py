"""Batches on their way to brokers: the sender, idempotence, failures."""
