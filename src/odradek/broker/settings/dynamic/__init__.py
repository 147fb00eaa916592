"""Settings that change while the broker runs: kept in the store and applied."""
