"""Exactly once into topics: one transaction a micro-batch, with a marker of the micro-batch inside it."""
