"""Group membership of a consumer: both protocols, committed offsets."""
