"""The broker's configuration: what can be set, where each value came from, and what may change it."""
