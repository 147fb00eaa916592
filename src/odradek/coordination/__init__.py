"""Shared truth of the cluster: small nodes with versions, sessions and watches, as ZooKeeper has them."""
