"""Requests that wait: purgatories, their time limits, and the listener that wakes them."""
