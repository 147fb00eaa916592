"""Clients of any Kafka cluster: connections, a view of the cluster, and the faces built on them."""
