"""Errors of a test's cluster."""

from __future__ import annotations

from odradek.common.errors import OdradekError


class ClusterError(OdradekError):
    """A test's cluster could not be started, stopped unexpectedly, or does not support the operation."""
