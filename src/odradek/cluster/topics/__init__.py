"""Topics in the store: validated, placed on brokers, created, changed and deleted."""
