"""The client libraries, one file each, doing the same tasks at their best settings."""
