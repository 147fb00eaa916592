"""Every message version that kio has, with any content: kio reads our bytes whole and writes the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from odradek.protocol import messages, schema
from odradek.protocol.structs import Message
from protocol import strategies
from protocol.oracle import kio_peer

SHARED = sorted(
    (name, version)
    for name, version in kio_peer.entity_paths()
    if name in schema.load_all() and version in schema.load_all()[name].versions
)
every_shared_version = pytest.mark.parametrize(("name", "version"), SHARED)


def check_against_kio(cls, version, max_examples, encode, decode):
    name = cls.SPEC.name

    @settings(max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategies.messages(cls, version, kio_peer.overrides(cls.SPEC, version)))
    def check(message):
        encoded = encode(message, version)
        content, end = kio_peer.read(name, version, encoded)

        assert end == len(encoded)
        assert kio_peer.write(name, version, content) == encoded
        assert decode(cls, encoded, version) == (message, len(encoded))

    check()


@every_shared_version
def test_kio_writes_what_it_read_from_us(name, version):
    cls = getattr(messages, name)
    check_against_kio(cls, version, 6, Message.encode, lambda cls, wire, version: cls.decode(wire, version))


@pytest.mark.slow
@every_shared_version
def test_kio_writes_what_it_read_from_either_walker(name, version, walk):
    check_against_kio(getattr(messages, name), version, 15, walk.encode, walk.decode)
