"""Groups of the classic protocol: join, sync, heartbeat, leave."""
