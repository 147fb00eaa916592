"""Every setting of brokers, topics and groups: name, type, default, documentation."""
