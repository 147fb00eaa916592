"""The consumer: fetches assigned partitions in the background, `poll` returns records; groups, offsets."""
