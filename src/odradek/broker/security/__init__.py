"""Authorization and quotas: ACLs, the permission table, authorized operations."""
