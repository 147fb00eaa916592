"""Settings that Kafka has and odradek does not offer: known by name, so that setting one is reported.

The tables are `not_offered.txt` (brokers), `not_offered_topic.txt` and `not_offered_group.txt`. A key under
`refuse` may only have Kafka's default, because another value promises what odradek does not do; one under
`warn` may have any value that Kafka accepts, and has no effect. DescribeConfigs lists them as Kafka does.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from odradek.broker.settings.declarations.declare import one_of_any_case
from odradek.common.config import (
    ANYTHING,
    Kind,
    Setting,
    UpdateMode,
    Valid,
    Value,
    at_least,
    between,
    each_of,
    one_of,
)
from odradek.common.errors import ConfigError

_RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\]")
_COLUMNS = 4
_REPLICAS = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class NotOffered(NamedTuple):
    """A known setting without effect, and why."""

    setting: Setting
    reason: str
    is_refused: bool
    is_shown: bool

    def check(self, text: str, name: str = "") -> None:
        """ConfigError for a value that Kafka refuses, or that promises what odradek does not do.

        `name` is the full name where a listener prefix precedes the key.
        """
        value = self.setting.parse(text)
        if self.is_refused and value != self.setting.default:
            raise ConfigError(f"{name or self.setting.key} is not offered: {self.reason}")


def read_table(name: str) -> dict[str, NotOffered]:
    """Every row of a table that lies beside this file, by key."""
    rows: dict[str, NotOffered] = {}
    policy = reason = ""
    # Not by importlib.resources, which would be the only one to need it when a broker starts.
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as table:
        lines = table.read().splitlines()
    for line in lines:
        if line.startswith("  "):
            row = _row(line, reason, is_refused=policy == "refuse")
            rows[row.setting.key] = row
        elif line and not line.startswith("#"):
            policy, _, reason = line.partition(": ")
    return rows


def _row(line: str, reason: str, *, is_refused: bool) -> NotOffered:
    key, kind_name, default, shown, *valid = line.split(None, _COLUMNS)
    kind = Kind[kind_name.upper()]
    is_shown = shown == "shown"
    setting = Setting(
        key=key,
        kind=kind,
        default=_default(kind, default),
        doc=f"Not offered: {reason}.",
        valid=_valid(key, kind, valid[0] if valid else ""),
        update_mode=UpdateMode.READ_ONLY,
        is_internal=not is_shown,
    )
    return NotOffered(setting, reason, is_refused, is_shown)


def _default(kind: Kind, text: str) -> Value:
    if text == "null":
        return None
    return Setting("", kind, None, "").parse("" if text == "[]" else text)


def _valid(key: str, kind: Kind, notation: str) -> Valid:
    """The value in the notation of Kafka's documentation."""
    if notation == _REPLICAS:
        return _throttled_replicas(key)
    if found := _RANGE.fullmatch(notation):
        lowest, highest = found.groups()
        return at_least(_number(lowest)) if highest is None else between(_number(lowest), _number(highest))
    if notation == "non-empty list":
        return Valid(lambda _: True, notation)  # Kafka means the elements, and ours never are empty
    if notation == "non-empty string":
        return Valid(bool, notation, lambda _: "String must be non-empty")
    words = notation.removeprefix("(case insensitive) ").strip("[]").split(", ")
    if not notation:
        return ANYTHING
    if notation.startswith("("):
        return one_of_any_case(*words)
    return each_of(*words) if kind is Kind.LIST else one_of(*words)


def _throttled_replicas(key: str) -> Valid:
    return Valid(
        lambda value: value == ("*",) or all(re.fullmatch("[0-9]+:[0-9]+", pair) for pair in value),
        _REPLICAS,
        lambda _: f"{key} must be the literal '*' or a list of replicas in the following format: {_REPLICAS}",
    )


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
