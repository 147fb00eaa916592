"""Rows of a DataFrame become records of topics: `df.write` and `writeStream` with format("odradek")."""
