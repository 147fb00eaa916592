"""Loops over single records, compiled by Cython; each also runs interpreted."""
