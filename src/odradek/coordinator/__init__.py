"""Replayed state over an internal topic: decide, write, answer after commit. The coordinators share it."""
