"""The controller: elects leaders, changes in-sync replicas, creates and deletes topics."""
