"""The brokers of the cluster: registrations, and the membership of this broker."""
