"""Fetching: sessions, positions, buffers, offset lookup, truncation detection."""
