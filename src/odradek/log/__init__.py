"""One partition on disk: segments, indexes, producer state, recovery, retention. No network code."""
