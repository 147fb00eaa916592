"""Whole brokers in one thread, over virtual time, network, disks and store: a run is decided by its seed."""
