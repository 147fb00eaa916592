"""A record batch as bytes: parse, build, check, compress; no I/O and no clock."""
