"""One segment of a partition: log file, offset, time and transaction index, roll conditions."""
