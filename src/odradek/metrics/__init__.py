"""Counters: plain integers where things happen, names and an exposition for whoever asks."""
