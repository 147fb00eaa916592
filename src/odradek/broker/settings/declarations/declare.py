"""How the broker's themes declare settings: a theme, and how each setting can be changed.

`read_only` is fixed at the start; `cluster_wide` may change at run time, for one broker or for all. Which is
which is Kafka's, but for listeners, which Kafka can change at run time; so is the importance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeVar, dataclass_transform

from odradek.common.config import Importance, Kind, UpdateMode, Valid, setting

BOOLEAN, STRING, INT, SHORT, LONG = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.SHORT, Kind.LONG
DOUBLE, LIST, PASSWORD = Kind.DOUBLE, Kind.LIST, Kind.PASSWORD
HIGH, LOW = Importance.HIGH, Importance.LOW

Theme = TypeVar("Theme")

read_only = partial(setting, update_mode=UpdateMode.READ_ONLY)
cluster_wide = partial(setting, update_mode=UpdateMode.CLUSTER_WIDE)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def theme(cls: type[Theme]) -> type[Theme]:
    """A class of settings that is only ever a part of BrokerConfig: it has fields, and no methods to make."""
    return dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)(cls)


def one_of_any_case(*choices: str) -> Valid:
    """One word out of a few, however it is written."""
    words = ", ".join(choices)
    return Valid(
        lambda value: value.upper() in choices,
        f"(case insensitive) [{words}]",
        lambda _: f"String must be one of (case insensitive): {words}",
    )
