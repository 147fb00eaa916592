"""The follower: fetches from the leader, appends, truncates."""
