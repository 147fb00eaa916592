"""Listeners: what can be said, what contradicts itself, and who is let in unasked."""

from __future__ import annotations

import pytest

from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.listeners import Endpoint, SecurityProtocol
from odradek.broker.settings.sources import Sources
from odradek.common.errors import ConfigError


def config(**settings: str) -> BrokerConfig:
    return broker_config(Sources({key.replace("_", "."): text for key, text in settings.items()}))


def test_listeners_are_read_with_their_protocols() -> None:
    made = config(
        listeners="client://127.0.0.1:9092, INTERNAL://[::1]:9093",
        listener_security_protocol_map="CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
        inter_broker_listener_name="internal",
    )

    assert made.endpoints == (
        Endpoint("CLIENT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092),
        Endpoint("INTERNAL", SecurityProtocol.PLAINTEXT, "::1", 9093),
    )
    assert [str(endpoint) for endpoint in made.endpoints] == [
        "CLIENT://127.0.0.1:9092",
        "INTERNAL://[::1]:9093",
    ]
    assert made.advertised_endpoints == made.endpoints
    assert made.inter_broker_listener == "INTERNAL"


@pytest.mark.parametrize(
    "endpoint",
    ["PLAINTEXT://127.0.0.1:1", "PLAINTEXT://127.9.9.9:1", "PLAINTEXT://[::1]:1", "PLAINTEXT://localhost:1"],
)
def test_a_listener_of_this_machine_needs_no_authentication(endpoint: str) -> None:
    assert config(listeners=endpoint).endpoints[0].is_loopback


@pytest.mark.parametrize(
    "endpoint",
    ["PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://[::]:9092", "PLAINTEXT://10.0.0.1:9092",
     "PLAINTEXT://broker.example:9092"],
)  # fmt: skip
def test_a_listener_for_other_machines_without_authentication_needs_an_explicit_word(endpoint: str) -> None:
    settings = {
        "listeners": endpoint,
        "advertised.listeners": "PLAINTEXT://10.0.0.1:9092",
    }

    with pytest.raises(ConfigError, match="without authentication") as refused:
        broker_config(Sources(settings))

    assert "odradek.allow.unauthenticated=true" in str(refused.value)
    assert broker_config(Sources({**settings, "odradek.allow.unauthenticated": "true"}))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_that_would_have_to_encrypt_or_authenticate_is_refused(protocol: str) -> None:
    settings = {"listeners": f"{protocol}://127.0.0.1:9092", "security_inter_broker_protocol": protocol}

    with pytest.raises(ConfigError, match=f"{protocol} is not offered yet; use PLAINTEXT"):
        config(**settings)


def test_listeners_of_kraft_controllers_are_not_opened() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "PLAINTEXT://here:9092,CONTROLLER://here:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "controller.listener.names": "controller",
    }

    made = broker_config(Sources(settings))

    assert [str(one) for one in made.endpoints] == ["PLAINTEXT://127.0.0.1:9092"]
    assert [str(one) for one in made.advertised_endpoints] == ["PLAINTEXT://here:9092"]
    with pytest.raises(ConfigError, match=r"not one of controller\.listener\.names"):
        broker_config(Sources({**settings, "controller.listener.names": "CONTROLLER,PLAINTEXT"}))


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"listeners": ""}, "must name at least one listener"),
        ({"listeners": "127.0.0.1:9092"}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://127.0.0.1:65536"}, "a port is at most 65535; 0 picks a free one"),
        ({"listeners": "MINE://127.0.0.1:1"}, "listener.security.protocol.map has no protocol for MINE"),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2"}, "PLAINTEXT is there twice"),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.2:1"}, "have the same port"),
        ({"listener_security_protocol_map": "MINE:TELNET"}, "MINE:TELNET is not NAME:PROTOCOL"),
        ({"listener_security_protocol_map": "A:SSL,a:SSL"}, "a is there twice"),
        ({"advertised_listeners": "SSL://here:1"}, "listeners only has PLAINTEXT"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "clients cannot use PLAINTEXT://0.0.0.0:1"),
        ({"inter_broker_listener_name": "MINE"}, "only PLAINTEXT is advertised"),
        ({"security_inter_broker_protocol": "SSL"}, "only PLAINTEXT is advertised"),
    ],
)  # fmt: skip
def test_listeners_that_cannot_be_are_refused(settings: dict[str, str], reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        config(**settings)


def test_one_port_may_serve_both_families_and_free_ports_never_clash() -> None:
    settings = {
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "A",
    }

    for pair in ("A://127.0.0.1:9092,B://[::1]:9092", "A://127.0.0.1:0,B://127.0.0.1:0"):
        assert len(broker_config(Sources({**settings, "listeners": pair})).endpoints) == 2


def test_what_is_set_for_one_listener_counts_there_alone() -> None:
    made = broker_config(Sources({"max.connections": "9", "listener.name.internal.max.connections": "3"}))

    assert made.for_listener("INTERNAL").max_connections == 3
    assert made.for_listener("PLAINTEXT").max_connections == 9
