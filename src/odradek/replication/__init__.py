"""Copies of a partition: who leads, what is committed, who may read and write here."""
