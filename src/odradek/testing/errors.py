"""What can go wrong with a cluster of a test."""

from __future__ import annotations

from odradek.common.errors import OdradekError


class ClusterError(OdradekError):
    """A test's cluster could not be started, did not live as long as it should, or cannot do that."""
