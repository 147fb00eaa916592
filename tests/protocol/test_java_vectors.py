"""Every message version against Kafka's own classes: same content from the same bytes, same bytes back."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol import messages, schema
from odradek.protocol.api import request_header_version, response_header_version
from odradek.protocol.api_key import ApiKey
from protocol.oracle import java, java_json

SPECS = schema.load_all()
every_message = pytest.mark.parametrize("name", SPECS)


def differing_defaults(ours: dict[str, Any], javas: dict[str, Any]) -> list[str]:
    """The fields of Java's that we lack or give another default."""
    differing = []
    for name, described in javas.items():
        mine = ours.get(name)
        if mine is None or mine["default"] != described["default"]:
            differing.append(f"{name}: ours {mine and mine['default']!r}, Java's {described['default']!r}")
        nested = differing_defaults((mine or {}).get("fields", {}), described.get("fields", {}))
        differing += [f"{name}.{problem}" for problem in nested]
    return differing


@every_message
def test_bytes_from_java_decode_to_the_content_that_java_gave_them(name, walk):
    cls, fields = getattr(messages, name), SPECS[name].fields

    for vector in java.vectors()[name]:
        message, end = walk.decode(cls, vector.encoded, vector.version)

        assert end == len(vector.encoded)
        assert java_json.content(fields, message, vector.version) == vector.content


@every_message
def test_what_java_wrote_is_written_again_byte_for_byte(name, walk):
    cls = getattr(messages, name)

    for vector in java.vectors()[name]:
        message, _ = walk.decode(cls, vector.encoded, vector.version)

        assert walk.encode(message, vector.version) == vector.encoded


@every_message
def test_fields_that_a_version_lacks_have_their_defaults(name):
    cls = getattr(messages, name)

    for vector in java.vectors()[name]:
        message, _ = cls.decode(vector.encoded, vector.version)
        absent = [field for field in SPECS[name].fields if vector.version not in field.versions]

        assert all(java_json.is_default(field, getattr(message, field.attribute)) for field in absent)


@every_message
def test_a_message_of_defaults_is_javas_message_of_defaults(name):
    cls = getattr(messages, name)
    first_of_version: dict[int, bytes] = {}
    for vector in java.vectors()[name]:
        first_of_version.setdefault(vector.version, vector.encoded)

    assert {version: cls().encode(version) for version in first_of_version} == first_of_version


# Java leaves unset records null. Ours are empty, as for every other field without a default in its schema: a
# broker must answer with empty records anyway, for there are clients that do not take null.
EMPTY_WHERE_JAVA_HAS_NULL = {
    "ProduceRequest": ["topicData.partitionData.records: ours '', Java's None"],
    "FetchResponse": ["responses.partitions.records: ours '', Java's None"],
    "ShareFetchResponse": ["responses.partitions.records: ours '', Java's None"],
}


@every_message
def test_every_field_has_javas_default(name):
    ours = java_json.defaults(SPECS[name].fields)

    for description in java.descriptions_of(name):
        assert differing_defaults(ours, description.fields) == EMPTY_WHERE_JAVA_HAS_NULL.get(name, [])


@every_message
def test_versions_are_those_of_both_kafkas_together(name):
    spec = SPECS[name]
    known = java.descriptions_of(name)
    if spec.kind.startswith("coordinator"):
        # 3.9.2 took the number that leads a key, now its type, for the version of one and the same message.
        known = known[:1]

    assert spec.versions.low == min(description.lowest for description in known)
    assert spec.versions.high == max(description.highest for description in known)
    assert known[0].api_key == (-1 if spec.key is None else spec.key)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.kind == "request"])
def test_a_version_is_unstable_where_kafka_says_so(name):
    described = java.descriptions_of(name)[0]

    assert (described.highest in SPECS[name].unstable) == described.is_unstable


@pytest.mark.parametrize(
    "name", [name for name, spec in SPECS.items() if spec.kind in ("request", "response")]
)
def test_every_version_goes_with_the_header_that_kafka_gives_it(name):
    spec = SPECS[name]
    header_version = request_header_version if spec.kind == "request" else response_header_version

    for description in java.descriptions_of(name):
        versions = range(description.lowest, description.highest + 1)
        ours = [header_version(ApiKey(spec.key), version) for version in versions]
        assert ours == description.header_versions


@pytest.mark.slow
@pytest.mark.java
def test_the_kept_vectors_are_what_the_program_writes_today():
    kept = {kafka: java.read_lines(kafka) for kafka in java.KAFKA_VERSIONS}

    assert java.make_lines() == kept
