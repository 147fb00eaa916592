"""Assignors as pure functions, used by clients (classic groups) and by the broker (KIP-848)."""
