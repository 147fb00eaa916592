"""Transactions, and the producer ids that idempotence alone needs too."""
