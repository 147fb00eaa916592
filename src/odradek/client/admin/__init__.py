"""Looking after a cluster: topics, settings, offsets, groups, brokers, ACLs; one file for each noun."""
