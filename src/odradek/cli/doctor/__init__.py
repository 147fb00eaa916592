"""`odradek doctor`: what is wrong with a cluster or a data directory, why, and what to do."""
