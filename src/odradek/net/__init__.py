"""Network input and output: frames, connections, listeners."""
