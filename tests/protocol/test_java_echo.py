"""Every message version with any content: Kafka's own classes read our bytes and write the same ones.

The kept vectors (test_java_vectors.py) prove the same without Java, for the contents that were drawn once.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from odradek.protocol import messages, schema
from protocol import strategies
from protocol.oracle import java, java_json

pytestmark = [pytest.mark.slow, pytest.mark.java]
EVERY_VERSION = [
    (name, version)
    for name, spec in schema.load_all().items()
    for version in range(spec.versions.low, spec.versions.high + 1)
]


@pytest.fixture(scope="module")
def echoes():
    running = {kafka: java.Echo(kafka) for kafka in java.KAFKA_VERSIONS}
    yield running
    for echo in running.values():
        echo.close()


@pytest.mark.parametrize(("name", "version"), EVERY_VERSION)
def test_java_writes_what_it_read_from_us(name, version, echoes):
    cls = getattr(messages, name)
    echo = echoes[java.kafka_with(name, version)]

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategies.messages(cls, version))
    def check(message):
        encoded = message.encode(version)
        answer = echo.ask(name, version, encoded)

        assert answer.encoded == encoded
        assert answer.content == java_json.content(cls.SPEC.fields, message, version)

    check()
