"""Who is alive and who leads: membership, the controller, replica placement, topics, the metadata image."""
