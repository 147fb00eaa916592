from __future__ import annotations

import pytest

from odradek import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer
from odradek.client.config import ClientConfig, from_keywords
from odradek.common.errors import ConfigError


def made(**keywords: object) -> ClientConfig:
    return from_keywords(ClientConfig, keywords)


def test_defaults_are_kafkas():
    config = made()
    assert (config.request_timeout_ms, config.retry_backoff_ms, config.metadata_max_age_ms) == (
        30_000,
        100,
        300_000,
    )


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("one:1,two:2", [("one", 1), ("two", 2)]),
        (["one:1", "two:2"], [("one", 1), ("two", 2)]),
        ("plain", [("plain", 9092)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_text_or_a_list(servers, addresses):
    assert made(bootstrap_servers=servers).addresses() == addresses


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"bootstrap_server": "x:1"}, "did you mean bootstrap_servers?"),
        ({"request_timeout": 5}, "did you mean request_timeout_ms?"),
        ({"request.timeout.ms": 5}, "as a keyword it is request_timeout_ms"),
        ({"zzz": 5}, "unknown setting 'zzz'$"),
        ({"security_protocol": "SSL"}, "unknown setting 'security_protocol': this client supports PLAINTEXT"),
        ({"ssl.ca.location": "x"}, "unknown setting 'ssl.ca.location': this client supports PLAINTEXT"),
        ({"interceptor_classes": []}, "it is interceptors="),
        ({"bootstrap_servers": [9092]}, r"bootstrap_servers has 9092 \(int\); its elements must be text"),
        ({"request_timeout_ms": "soon"}, "Not a number"),
        ({"request_timeout_ms": -1}, "at least"),
        ({"request_timeout_ms": 1.5}, "must be of type int"),
        ({"request_timeout_ms": True}, "must be of type int"),
        ({"request_timeout_ms": None}, "non null"),
        ({"client_id": 7}, "must be of type string"),
        ({"bootstrap_servers": []}, "give at least one"),
        ({"bootstrap_servers": "host:port"}, "'host:port' is not host:port"),
        ({"bootstrap_servers": "host:70000"}, "is not host:port"),
        ({"bootstrap_servers": "::1:9092"}, "is not host:port"),
        ({"bootstrap_servers": ":9092"}, "is not host:port"),
    ],
)
def test_a_wrong_name_or_value_is_refused_with_the_reason(keywords, words):
    with pytest.raises(ConfigError, match=words):
        made(**keywords)


@pytest.mark.parametrize("client", [Producer, AsyncProducer, Consumer, AsyncConsumer, Admin, AsyncAdmin])
@pytest.mark.parametrize("misplaced", [{"bootstrap.servers": "x"}, "localhost:9092"])
def test_settings_are_keywords(client, misplaced):
    with pytest.raises(ConfigError, match="settings are keyword arguments"):
        client(misplaced)


@pytest.mark.parametrize("client", [Producer, AsyncProducer, Consumer, AsyncConsumer])
@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"config": {}}, "a keyword argument of its own"),
        ({"interceptors": [print]}, "not an object with on_"),
        ({"interceptors": print}, "it must be a list of interceptors"),
    ],
)
def test_what_other_libraries_want_is_refused_with_the_reason(client, keywords, words):
    with pytest.raises(ConfigError, match=words):
        client(**keywords)


@pytest.mark.parametrize(
    ("client", "name"),
    [
        (Producer, "key_serializer"),
        (AsyncProducer, "value_serializer"),
        (Producer, "partitioner"),
        (Consumer, "key_deserializer"),
        (AsyncConsumer, "value_deserializer"),
    ],
)
def test_what_must_be_a_function_is_refused_if_it_is_none(client, name):
    with pytest.raises(ConfigError, match=rf"{name} is 'json' \(str\); it must be a function"):
        client(**{name: "json"})
