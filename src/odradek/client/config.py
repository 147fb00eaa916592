"""Settings that every client has, and how keyword arguments become settings.

A client's keyword arguments are Kafka's names in Python case: `request.timeout.ms` is `request_timeout_ms`.
Each kind of client declares a frozen dataclass on top of `ClientConfig`; `from_keywords` makes it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from odradek.common.config import Importance, Kind, Setting, Value, at_least, setting
from odradek.common.errors import ConfigError

__all__ = ["Address", "ClientConfig", "from_keywords", "nearest", "parse_addresses"]

DEFAULT_PORT = 9092
_INSTEAD = {
    "interceptor_classes": "it is interceptors=[…] here, objects with the methods of an interceptor",
    "partitioner_class": "it is partitioner=… here, a function",
    "enable_metrics_push": "statistics() returns the counters",
    "metric_reporters": "statistics() returns the counters",
    "security_protocol": "this client supports PLAINTEXT only",
    "config": "each setting is a keyword argument of its own: Producer(**settings)",
    "configs": "each setting is a keyword argument of its own: Producer(**settings)",
}
"""Settings of other clients, and what to use instead."""

Config = TypeVar("Config", bound="ClientConfig")
Address = tuple[str, int]

_PYTHON_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.SHORT: (int,),
    Kind.INT: (int,),
    Kind.LONG: (int,),
    Kind.DOUBLE: (int, float),
    Kind.LIST: (list, tuple, set, frozenset),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """What a producer, a consumer and an admin client have in common."""

    bootstrap_servers: tuple[str, ...] = setting(
        "bootstrap.servers",
        Kind.LIST,
        ("localhost:9092",),
        "Brokers to connect to first, as host:port; a few are enough to find all others.",
        importance=Importance.HIGH,
    )
    client_id: str = setting(
        "client.id", Kind.STRING, "odradek", "The name under which a broker logs and limits this client."
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms", Kind.INT, 30_000, "How long one request may wait for its response.", at_least(1)
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms",
        Kind.INT,
        60_000,
        "How long one call may take with all its retries, unless it has a time-out of its own.",
        at_least(0),
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms",
        Kind.LONG,
        100,
        "The pause before the first retry; each pause is twice the last.",
        at_least(0),
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", Kind.LONG, 1000, "The longest pause before a retry.", at_least(0)
    )
    reconnect_backoff_ms: int = setting(
        "reconnect.backoff.ms",
        Kind.LONG,
        50,
        "The pause before a broker that could not be reached is tried again; doubles each time.",
        at_least(0),
    )
    reconnect_backoff_max_ms: int = setting(
        "reconnect.backoff.max.ms",
        Kind.LONG,
        1000,
        "The longest pause before a broker is tried again.",
        at_least(0),
    )
    metadata_max_age_ms: int = setting(
        "metadata.max.age.ms",
        Kind.LONG,
        300_000,
        "After this time the metadata is refreshed even without an error.",
        at_least(0),
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        Kind.LONG,
        300_000,
        "A connection unused for longer is replaced by a new one.",
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms",
        Kind.LONG,
        10_000,
        "How long it may take to connect.",
        at_least(1),
    )
    odradek_direct_read: bool = setting(
        "odradek.direct.read",
        Kind.BOOLEAN,
        True,
        "Whether a thread that waits for a response may read it from the socket; else only the client's own "
        "thread reads.",
    )

    def addresses(self) -> list[Address]:
        """The bootstrap servers as (host, port)."""
        return parse_addresses(self.bootstrap_servers)


def from_keywords(config_class: type[Config], keywords: Mapping[str, Any]) -> Config:
    """A client's settings; ConfigError names what is wrong and what was probably meant."""
    fields = {field.name: field.metadata["setting"] for field in dataclasses.fields(config_class)}
    values: dict[str, Value] = {}
    for name, given in keywords.items():
        declared: Setting | None = fields.get(name)
        if declared is None:
            raise ConfigError(_unknown(name, fields))
        values[name] = _value(declared, name, given)
    made = config_class(**values)  # type: ignore[arg-type]
    made.addresses()
    return made


def check_keywords_only(client: str, misplaced: tuple[object, ...]) -> None:
    """ConfigError for settings given as other libraries expect them: a dictionary, an address."""
    if misplaced:
        raise ConfigError(
            f'settings are keyword arguments: {client}(bootstrap_servers="localhost:9092"), '
            f"not {client}({', '.join(map(repr, misplaced))})"
        )


def check_function(name: str, given: object) -> None:
    """ConfigError unless it is a function or None."""
    if given is not None and not callable(given):
        raise ConfigError(f"{name} is {given!r} ({type(given).__name__}); it must be a function")


def check_interceptors(given: object, *methods: str) -> None:
    """ConfigError unless these are objects with the methods of an interceptor."""
    if not isinstance(given, list | tuple):
        raise ConfigError(f"interceptors is {given!r}; it must be a list of interceptors")
    for one in given:
        if isinstance(one, type) or not all(callable(getattr(one, method, None)) for method in methods):
            raise ConfigError(
                f"interceptors has {one!r}, which is not an object with {' and '.join(methods)}"
            )


def parse_addresses(servers: Iterable[str]) -> list[Address]:
    """Each is host:port, [v6]:port or host; ConfigError if there are none, or one is malformed."""
    addresses = [_parse_address(server.strip()) for server in servers]
    if not addresses:
        raise ConfigError("bootstrap_servers is empty; give at least one host:port")
    return addresses


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)), None)


def _parse_address(server: str) -> Address:
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    is_bare_v6 = ":" in host and not server.startswith("[")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536 or is_bare_v6:
        raise ConfigError(f"bootstrap_servers: {server!r} is not host:port")
    return host, int(port)


def _unknown(name: str, fields: Mapping[str, Setting]) -> str:
    python_name = name.replace(".", "_")
    if python_name.startswith(("ssl_", "sasl_")):
        python_name = "security_protocol"
    if python_name in _INSTEAD:
        return f"unknown setting {name!r}: {_INSTEAD[python_name]}"
    if python_name in fields:
        return f"unknown setting {name!r}; as a keyword it is {python_name}"
    meant = nearest(python_name, fields)
    return f"unknown setting {name!r}" + (f"; did you mean {meant}?" if meant else "")


def _value(declared: Setting, name: str, given: Any) -> Value:
    """A Python value checked against its declaration; text is read as a properties file would be."""
    if isinstance(given, str):
        return declared.parse(given)
    if given is None:
        declared.check(None)
        return None
    wanted: Any = _PYTHON_TYPES.get(declared.kind, (str,))
    # In Python, bool is a subclass of int.
    if not isinstance(given, wanted) or (isinstance(given, bool) and declared.kind is not Kind.BOOLEAN):
        kind = declared.kind.name.lower()
        raise ConfigError(f"{name} is {given!r} ({type(given).__name__}); it must be of type {kind}")
    value: Value = given
    if declared.kind is Kind.LIST:
        wrong = next((element for element in given if not isinstance(element, str)), None)
        if wrong is not None:
            raise ConfigError(f"{name} has {wrong!r} ({type(wrong).__name__}); its elements must be text")
        value = tuple(given)
    elif declared.kind is Kind.DOUBLE:
        value = float(given)
    declared.check(value)
    return value
