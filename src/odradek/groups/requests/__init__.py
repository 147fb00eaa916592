"""The requests to the group coordinator: each is one operation on the state of a shard."""
