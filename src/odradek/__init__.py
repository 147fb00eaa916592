"""odradek: Kafka's commit log in Python.

from odradek import Admin, AsyncAdmin, TopicPartition

The names are looked up at first use, so that importing a low room costs nothing. `__init__.pyi` has them for
type checkers: an import here, even one that never runs, would make every room depend on the clients.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0.dev0"

_HOMES = {
    "Admin": "odradek.client.admin.admin",
    "AsyncAdmin": "odradek.client.admin.admin",
    "AsyncConsumer": "odradek.client.consumer.async_consumer",
    "AsyncProducer": "odradek.client.producer.async_producer",
    "Consumer": "odradek.client.consumer.consumer",
    "Producer": "odradek.client.producer.producer",
    "TopicPartition": "odradek.common.ids",
}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
