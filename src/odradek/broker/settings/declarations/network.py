"""Listeners and connections: addresses, limits and time-outs."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    STRING,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import INT_MAX, at_least, one_of


@theme
class NetworkSettings:
    """Listeners, sockets, limits of connections and requests."""

    listeners: tuple[str, ...] = read_only(
        "listeners",
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses to listen on, as NAME://host:port; an empty host is every interface, port 0 a free one.",
        importance=HIGH,
    )
    advertised_listeners: tuple[str, ...] | None = read_only(
        "advertised.listeners",
        LIST,
        None,
        "Addresses in the metadata for clients and other brokers, where they differ from listeners.",
        importance=HIGH,
    )
    controller_listener_names: tuple[str, ...] | None = read_only(
        "controller.listener.names",
        LIST,
        None,
        "Listeners that are not opened: Kafka has them for its KRaft controllers, which do not exist here.",
        importance=HIGH,
    )
    listener_security_protocol_map: str = read_only(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener name, as NAME:PROTOCOL pairs.",
        importance=LOW,
    )
    inter_broker_listener_name: str | None = read_only(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener on which brokers talk to each other; not together with security.inter.broker.protocol.",
    )
    control_plane_listener_name: str | None = read_only(
        "control.plane.listener.name",
        STRING,
        None,
        "The listener on which the controller sends its requests to this broker; the one between brokers if "
        "not set.",
    )
    security_inter_broker_protocol: str = read_only(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The protocol between brokers, only PLAINTEXT so far; it names the listener where none is named.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    socket_listen_backlog_size: int = read_only(
        "socket.listen.backlog.size",
        INT,
        50,
        "Connections that may wait to be accepted, as far as the system allows.",
        at_least(1),
    )
    socket_receive_buffer_bytes: int = read_only(
        "socket.receive.buffer.bytes",
        INT,
        -1,
        "The receive buffer of an accepted socket; -1 leaves the system's, which takes large requests.",
        importance=HIGH,
    )
    socket_send_buffer_bytes: int = read_only(
        "socket.send.buffer.bytes",
        INT,
        -1,
        "The send buffer of an accepted socket; -1 leaves the system's, which takes 1 MB of records at once.",
        importance=HIGH,
    )
    socket_request_max_bytes: int = read_only(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "The largest request; a longer one closes its connection.",
        at_least(1),
        importance=HIGH,
    )
    queued_max_requests: int = read_only(
        "queued.max.requests",
        INT,
        500,
        "Requests that may be open, waiting ones included; at the limit no more are read.",
        at_least(1),
        importance=HIGH,
    )
    queued_max_request_bytes: int = read_only(
        "queued.max.request.bytes",
        LONG,
        -1,
        "Bytes of open requests; at the limit no more are read, and -1 means no limit.",
    )
    connections_max_idle_ms: int = read_only(
        "connections.max.idle.ms", LONG, 600_000, "A connection that was silent for this long is closed."
    )
    max_connections: int = cluster_wide(
        "max.connections",
        INT,
        INT_MAX,
        "Connections that the broker, or with listener.name.NAME in front one listener, holds at most.",
        at_least(0),
    )
    max_connections_per_ip: int = cluster_wide(
        "max.connections.per.ip", INT, INT_MAX, "Connections from one address.", at_least(0)
    )
    max_connections_per_ip_overrides: str = cluster_wide(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Exceptions to max.connections.per.ip, as host:count pairs.",
    )
    max_connection_creation_rate: int = cluster_wide(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        "New connections that are accepted per second.",
        at_least(0),
    )
