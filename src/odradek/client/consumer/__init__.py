"""Records in: what is assigned, fetched ahead in the background, handed out by `poll`; groups and offsets."""
