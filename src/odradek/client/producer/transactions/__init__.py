"""Transactions of producers: the state of one, the requests to its coordinator, errors by type."""
