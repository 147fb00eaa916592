"""Fakes and helpers for tests, ours and those of others; nothing else in odradek imports this room."""
