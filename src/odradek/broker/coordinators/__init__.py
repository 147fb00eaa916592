"""Connects the coordinators with replication: internal topics, timers, group settings."""
