"""Clients of any Kafka cluster: connections, metadata, producers, consumers, admin clients."""
