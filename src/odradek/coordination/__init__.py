"""The cluster's shared store: nodes with versions, sessions and watches, as in ZooKeeper."""
