"""The options that begin with `kafka.`: settings of our clients in Kafka's spelling."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from odradek.client.config import ClientConfig, nearest
from odradek.common.errors import ConfigError

_KAFKA = "kafka."


def kafka_settings(
    given: Mapping[str, str],
    own: type[ClientConfig],
    other: type[ClientConfig],
    refused: Mapping[str, str],
    check: Callable[[Mapping[str, str]], object],
) -> dict[str, str]:
    """Keyword and text of each setting; ConfigError names what is wrong and what to do.

    `given` has option names in lower case. Settings that only the class `other` has are left out: a table has
    one set of options for reading and writing. `refused` has settings that an option replaces.
    """
    named = {name.removeprefix(_KAFKA): text for name, text in given.items() if name.startswith(_KAFKA)}
    if "bootstrap.servers" not in named:
        raise ConfigError(
            "the option kafka.bootstrap.servers is missing: give the brokers as host:port,host:port"
        )
    for name, instead in refused.items():
        if name in named:
            raise ConfigError(f"the option kafka.{name} is not supported: {instead}")
    owned = {field.name for field in dataclasses.fields(own)}
    others = {field.name for field in dataclasses.fields(other)}
    keywords = {name.replace(".", "_"): text for name, text in named.items()}
    settings = {name: text for name, text in keywords.items() if name in owned or name not in others}
    try:
        check(settings)
    except ConfigError as error:
        raise ConfigError(f"an option that begins with kafka. is wrong: {error}") from None
    return settings


def check_names(given: Mapping[str, str], known: Mapping[str, str], action: str) -> None:
    """Refuse what looks like one of the `known` options but is none; `known` has them by lower-case name."""
    for name in given:
        if name in known or name.startswith(_KAFKA):
            continue
        meant = nearest(name, known)
        if meant is not None and abs(len(meant) - len(name)) <= 2:
            raise ConfigError(f"unknown option {name!r} for {action}; did you mean {known[meant]}?")


def boolean(name: str, text: str) -> bool:
    """An option that is true or false."""
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"the option {name} is {text!r}; it must be true or false")
    return text.lower() == "true"


def number(name: str, text: str, least: int = 0) -> int:
    """An option that is an integer."""
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if found < least:
        raise ConfigError(f"the option {name} is {text!r}; it must be an integer of at least {least}")
    return found
