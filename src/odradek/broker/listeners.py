"""The listeners of a broker: opened by its configuration, within limits that may change while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.requests.served_apis import CONTROL
from odradek.broker.requests.services import Services
from odradek.broker.requests.startup_request_blocker import StartupRequestBlocker
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.coordination.payloads import Listener as RegisteredListener
from odradek.net.admission import Admission, AdmissionLimits
from odradek.net.connection import NO_API_KEYS, ConnectionLimits
from odradek.net.listening import SocketOptions
from odradek.net.request_limit import UNBOUNDED, RequestLimit
from odradek.net.server import Listener, ListenerLimits

CONTROL_KEYS = frozenset(map(int, CONTROL))
ANY_INTERFACE = "0.0.0.0"


class Listeners:
    """Every listener by name. Owned by the server, on the loop.

    They share what is bounded for the whole broker: connections (`admission`) and requests (`request_limit`).
    """

    def __init__(self, config: BrokerConfig, make_listener: Callable[..., Any] = Listener) -> None:
        self._config = config
        self._make_listener = make_listener
        self.admission = Admission(_admission_limits(config))
        max_bytes = config.queued_max_request_bytes
        self.request_limit = RequestLimit(
            config.queued_max_requests, max_bytes if max_bytes > 0 else UNBOUNDED
        )
        self._listeners: dict[str, Listener] = {}
        self.admission.close_least_active = self._close_least_active
        self.dispatchers: dict[str, Dispatcher] = {}
        self._blockers: dict[str, StartupRequestBlocker] = {}

    def __iter__(self) -> Iterator[tuple[str, Listener]]:
        return iter(self._listeners.items())

    def open(self, services: Services) -> None:
        """Bind every address without accepting connections yet; raises ListenError."""
        for endpoint in self._config.endpoints:
            config = self._config.for_listener(endpoint.listener)
            dispatcher = self.dispatchers[endpoint.listener] = Dispatcher(services, endpoint.listener)
            blocker = self._blockers[endpoint.listener] = StartupRequestBlocker(dispatcher)
            listener = self._make_listener(
                blocker.handle,
                connection_limits=ConnectionLimits(max_frame_bytes=config.socket_request_max_bytes),
                limits=_listener_limits(self._config, endpoint.listener),
                admission=self.admission,
                request_limit=self.request_limit,
                socket_options=SocketOptions(
                    config.socket_send_buffer_bytes,
                    config.socket_receive_buffer_bytes,
                    config.socket_listen_backlog_size,
                ),
                exempt_api_keys=CONTROL_KEYS if config.is_for_brokers(endpoint.listener) else NO_API_KEYS,
                is_privileged=self._is_privileged(endpoint.listener),
            )
            listener.listen(endpoint.host or ANY_INTERFACE, endpoint.port)
            self._listeners[endpoint.listener] = listener

    def apply(self, config: BrokerConfig) -> None:
        """Apply the limits of another configuration; open connections stay."""
        self._config = config
        self.admission.limits = _admission_limits(config)
        for name, listener in self._listeners.items():
            listener.limits = _listener_limits(config, name)

    def advertised(self) -> list[RegisteredListener]:
        """The advertised listeners, with their actual ports."""
        registered = []
        for endpoint in self._config.advertised_endpoints:
            bound = self._listeners.get(endpoint.listener)
            port = endpoint.port or (bound.port if bound is not None else 0)
            host = endpoint.host or "localhost"
            registered.append(
                RegisteredListener(endpoint.listener, host, port, endpoint.security_protocol.value)
            )
        return registered

    def _is_privileged(self, listener: str) -> bool:
        """Whether a listener is for brokers, and clients have others."""
        are_for_brokers = [self._config.is_for_brokers(one.listener) for one in self._config.endpoints]
        return self._config.is_for_brokers(listener) and not all(are_for_brokers)

    def _close_least_active(self) -> None:
        """Close a connection to the fullest listener that is for clients only."""
        for_clients = [one for name, one in self._listeners.items() if not self._config.is_for_brokers(name)]
        fullest = max(for_clients, key=attrgetter("connection_count"), default=None)
        if fullest is not None:
            fullest.close_least_active()

    def start_accepting(self) -> None:
        """Accept connections, also those that were waiting; only the controller's requests are served yet."""
        for listener in self._listeners.values():
            listener.start_accepting()

    def let_clients_in(self) -> None:
        """Serve every request, those first that have waited."""
        for name, listener in self._listeners.items():
            listener.handle_with(self.dispatchers[name].handle)
            self._blockers[name].open()

    def stop_accepting(self) -> None:
        """Accept no more connections."""
        for listener in self._listeners.values():
            listener.stop_accepting()

    def close(self) -> None:
        """Close every connection."""
        for listener in self._listeners.values():
            listener.close()


def _admission_limits(config: BrokerConfig) -> AdmissionLimits:
    return AdmissionLimits(
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        per_ip_overrides=config.connection_limits,
    )


def _listener_limits(config: BrokerConfig, listener: str) -> ListenerLimits:
    config = config.for_listener(listener)
    return ListenerLimits(
        max_connections=config.max_connections,
        max_per_second=config.max_connection_creation_rate,
        max_idle_seconds=config.connections_max_idle_ms / 1000,
    )
