"""Connections to brokers: requests, responses, versions, retries, background loops."""
