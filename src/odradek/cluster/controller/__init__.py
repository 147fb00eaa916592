"""The one broker that decides for all: leaders, in-sync replicas, topics that come and go."""
