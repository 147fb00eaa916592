"""The controller's requests, applied to this broker."""
