"""Tools that read log directories without a broker: scan, verify, repair, fork."""
