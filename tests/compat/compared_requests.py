"""The same request to two brokers, and what differs between their answers, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from broker.wire import ClosedByBroker, WireClient
from odradek.protocol.api import response_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.schema import FieldSpec
from odradek.protocol.structs import Message

NO_ID = bytes(16)
CLOSED = "the connection was closed"

# What two clusters cannot have in common.
ALWAYS_APART = frozenset(
    {"throttle_time_ms", "cluster_id", "host", "port", "log_dir", "total_bytes", "usable_bytes"}
)
# Texts for people are our own; but where Kafka says something we do, too.
TEXTS = frozenset({"error_message", "batch_index_error_message"})


class ApiRequest(NamedTuple):
    """A request that both brokers get; `apart` names fields that may differ, and a comment there says why."""

    name: str
    api_key: ApiKey
    version: int
    body: Message
    apart: frozenset[str] = frozenset()


def answer_of(address: str, compared: ApiRequest) -> Any:
    """The answer in comparable form; CLOSED if there was none."""
    with WireClient(address) as client:
        try:
            response = client.ask(compared.api_key, compared.version, compared.body)
        except ClosedByBroker:
            return CLOSED
    fields = response_class(compared.api_key).SPEC.fields
    return canonical(response, fields, compared.version, compared.apart | ALWAYS_APART)


def canonical(struct: Any, fields: tuple[FieldSpec, ...], version: int, apart: frozenset[str]) -> Any:
    """A struct as a dictionary of the fields that its version has."""
    if struct is None:
        return None
    return {
        field.attribute: _value(getattr(struct, field.attribute), field, version, apart)
        for field in fields
        if version in field.versions and field.attribute not in apart
    }


def _value(value: Any, field: FieldSpec, version: int, apart: frozenset[str]) -> Any:
    if field.is_array and value is not None:
        rows = [_one(one, field, version, apart) for one in value]
        # Neither broker promises an order of rows.
        return sorted(rows, key=repr)
    return _one(value, field, version, apart)


def _one(value: Any, field: FieldSpec, version: int, apart: frozenset[str]) -> Any:
    if field.fields:
        return canonical(value, field.fields, version, apart)
    if field.type == "uuid":
        return value != NO_ID
    if field.attribute in TEXTS:
        return bool(value)
    if field.type == "records":
        return None if value is None else bytes(value)
    return value


def differences(ours: Any, kafkas: Any, path: str = "") -> Iterator[str]:
    """One line for each place where the answers part."""
    if isinstance(ours, dict) and isinstance(kafkas, dict):
        for name in {**ours, **kafkas}:
            if name in TEXTS and ours.get(name):
                continue
            yield from differences(ours.get(name), kafkas.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(ours, list) and isinstance(kafkas, list) and len(ours) == len(kafkas):
        for index, (one, other) in enumerate(zip(ours, kafkas, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif ours != kafkas:
        yield f"{path}: ours {_short(ours)}, Kafka's {_short(kafkas)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}…"
