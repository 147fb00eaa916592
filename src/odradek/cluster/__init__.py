"""Membership, the controller, replica placement, topics, the metadata image."""
