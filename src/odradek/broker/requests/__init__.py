"""Requests: dispatch, context, waiting requests, fetch sessions, error responses."""
