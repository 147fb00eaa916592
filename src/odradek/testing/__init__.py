"""Clusters and fakes for tests, yours and ours; nothing else in odradek imports this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.testing.cluster import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError"]


def __getattr__(name: str) -> object:
    # Imported late, so that the fakes and pytest's plugin do not import a whole broker.
    if name in __all__:
        from odradek.testing import cluster  # noqa: PLC0415

        return getattr(cluster, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
