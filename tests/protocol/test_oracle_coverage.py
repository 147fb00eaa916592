"""No message version is checked by our own code alone: each has Java's vectors or kio's class beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from odradek.protocol import schema
from odradek.protocol.schema import FieldSpec
from protocol.oracle import java, java_json, kio_peer


def every_version() -> set[tuple[str, int]]:
    return {
        (name, version)
        for name, spec in schema.load_all().items()
        for version in range(spec.versions.low, spec.versions.high + 1)
    }


def java_versions() -> set[tuple[str, int]]:
    return {(name, vector.version) for name, vectors in java.vectors().items() for vector in vectors}


def tagged_paths(fields: tuple[FieldSpec, ...], version: int, path: str = "") -> Iterator[str]:
    for field in fields:
        name = f"{path}.{java_json.name_of(field)}"
        if version in field.versions:
            if field.tag is not None:
                yield name
            yield from tagged_paths(field.fields, version, name)


def content_paths(content: Any, path: str = "") -> Iterator[str]:
    for element in content if isinstance(content, list) else [content]:
        if isinstance(element, dict):
            for name, value in element.items():
                yield f"{path}.{name}"
                yield from content_paths(value, f"{path}.{name}")


def test_every_message_version_has_an_oracle_that_we_did_not_write():
    without = every_version() - java_versions() - kio_peer.entity_paths().keys()

    assert sorted(without) == []


def test_java_has_vectors_for_every_version_that_kio_lacks():
    lacking = every_version() - kio_peer.entity_paths().keys()

    assert sorted(lacking - java_versions()) == []


def test_every_tagged_field_of_every_version_is_set_in_some_vector():
    wanted = {
        (name, version, path)
        for name, version in every_version()
        for path in tagged_paths(schema.load_all()[name].fields, version)
    }
    found = {
        (name, vector.version, path)
        for name, vectors in java.vectors().items()
        for vector in vectors
        for path in content_paths(vector.content)
    }

    assert sorted(wanted - found) == []


def test_no_vector_is_kept_for_a_message_that_is_gone():
    assert java_versions() <= every_version()
