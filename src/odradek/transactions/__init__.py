"""Transactions, and the producer ids that idempotent producers need too."""
