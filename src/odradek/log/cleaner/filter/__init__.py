"""Which records survive a compaction: the map of keys, the rules, and the loops over records."""
