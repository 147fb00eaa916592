"""Bytes in motion: frames, connections, listeners."""
