"""The admin client: topics, settings, offsets, groups, brokers, ACLs; one file for each."""
