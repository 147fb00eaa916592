"""Looking after a cluster: topics, settings, offsets, groups, brokers; one file for each noun."""
