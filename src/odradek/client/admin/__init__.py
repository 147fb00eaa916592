"""Looking after a cluster: topics, settings, offsets, brokers; one file for each noun."""
