"""The messages of the wire and of the internal topics, made from schema files; no I/O and no clock."""
