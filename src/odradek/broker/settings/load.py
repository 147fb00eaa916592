"""A broker's configuration at its start: a file, then the command line; all errors are reported at once.

An error names the key, the value, what is valid, and where the value came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.listeners import Contradiction
from odradek.broker.settings.not_offered import NotOffered
from odradek.broker.settings.properties import read_properties
from odradek.broker.settings.sources import Sources
from odradek.common.config import Kind, Setting
from odradek.common.errors import ConfigError


class Given(NamedTuple):
    """One value and its source."""

    key: str
    text: str
    place: str


class Loaded(NamedTuple):
    """A valid configuration, and warnings about it."""

    config: BrokerConfig
    warnings: tuple[str, ...] = ()


def load(
    path: str | None = None,
    overrides: Iterable[str] = (),
    defaults: Iterable[tuple[str, str]] = (),
    options: Iterable[Given] = (),
) -> Loaded:
    """The configuration of a broker; raises ConfigError with a line for every error.

    Later wins: `defaults` of the command line, the file, `options` of the command line that set a
    setting, `overrides` as `key=value`.
    """
    in_file = (
        []
        if path is None
        else [Given(key, text, f"{path}, line {n}") for key, text, n in read_properties(path)]
    )
    given = [Given(key, text, "command line") for key, text in defaults]
    return combine([*given, *in_file, *options, *map(parse_override, overrides)])


def parse_override(text: str) -> Given:
    """What `--set key=value` says."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: must be key=value, such as num.partitions=3")
    return Given(key.strip(), value.strip(), "--set")


def combine(given: Sequence[Given]) -> Loaded:
    """All values; the last one of a key counts, with a warning for a file that has it twice."""
    last = {one.key: one for one in given}
    problems: list[str] = []
    warnings = [*_without_effect(last.values()), *_repeated(given)]
    for one in last.values():
        try:
            warnings += _check(one)
        except ConfigError as problem:
            problems.append(f"{problem} ({one.place})")
    if not problems:
        try:
            return Loaded(broker_config(Sources(_effective_texts(last.values()))), tuple(warnings))
        except ConfigError as problem:
            problems.append(f"{problem}{_places(problem, last)}")
    raise ConfigError("\n".join(problems))


def _check(given: Given) -> list[str]:
    known = catalog.broker_setting(given.key)
    if isinstance(known, NotOffered):
        known.check(given.text, given.key)
        return []
    if known is None:
        raise ConfigError(_unknown(given.key))
    known.parse(given.text)
    return [
        f"{given.key} names {entry} twice: it counts once ({given.place})" for entry in _twice(known, given)
    ]


def _without_effect(given: Iterable[Given]) -> list[str]:
    """One warning for all settings that are accepted and have no effect.

    Not for a setting that may only have its default: odradek does what that promises.
    """
    known = ((one.key, catalog.broker_setting(one.key)) for one in given)
    names = sorted(key for key, row in known if isinstance(row, NotOffered) and not row.is_refused)
    if not names:
        return []
    return [f"these settings have no effect (see docs/configuration.md): {', '.join(names)}"]


def _twice(known: Setting, given: Given) -> list[str]:
    """The entries that a list has more than once."""
    entries = [part.strip() for part in given.text.split(",")] if known.kind is Kind.LIST else []
    return [entry for entry in dict.fromkeys(entries) if entry and entries.count(entry) > 1]


def _unknown(key: str) -> str:
    base = catalog.base_name(key)
    if base != key and base in catalog.BROKER:
        return f"{base} cannot be set for one listener, as {key} does"
    if key in catalog.TOPIC or key in catalog.topic_not_offered():
        return f"{key} is a setting of topics, not of brokers"
    if key in catalog.DYNAMIC_ONLY:
        return f"{key} can only be set at run time, by `odradek configs`"
    return catalog.unknown_setting(key, [*catalog.BROKER, *catalog.broker_not_offered()])


def _effective_texts(given: Iterable[Given]) -> dict[str, str]:
    texts = {one.key: one.text for one in given}
    # Two names of one setting, as in Kafka: both have the value.
    if "node.id" in texts:
        texts.setdefault("broker.id", texts["node.id"])
    elif "broker.id" in texts and not texts["broker.id"].strip().startswith("-"):
        texts["node.id"] = texts["broker.id"]
    return texts


def _repeated(given: Sequence[Given]) -> list[str]:
    seen: dict[tuple[str, str], Given] = {}
    warnings = []
    for one in given:
        origin = (one.key, _origin(one.place))
        if origin in seen:
            warnings.append(
                f"{one.key} is set twice ({seen[origin].place}; {one.place}): the last one counts"
            )
        seen[origin] = one
    return warnings


def _origin(place: str) -> str:
    """A file, or the command line with all its options."""
    return "--set" if place.startswith("--") else place.partition(",")[0]


def _places(problem: ConfigError, given: dict[str, Given]) -> str:
    """Where the settings that contradict each other were given; nothing for ones that are defaults."""
    keys = problem.keys if isinstance(problem, Contradiction) else ()
    places = [f"{key}: {given[key].place}" for key in keys if key in given]
    return f" ({'; '.join(places)})" if places else ""
