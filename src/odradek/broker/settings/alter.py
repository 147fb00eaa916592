"""Changing settings at run time: SET, DELETE, APPEND and SUBTRACT on what was set before.

Values in, values out: the caller writes the result to the store and notifies the brokers. An error is a
KafkaError with Kafka's code and message: INVALID_CONFIG for topics and groups, mostly INVALID_REQUEST for
brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.group import check_group_overrides
from odradek.broker.settings.not_offered import NotOffered
from odradek.broker.settings.sources import Sources
from odradek.common.config import Kind, Setting, UpdateMode
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import ConfigError, KafkaError


class Operation(IntEnum):
    """What is done to a value, numbered as IncrementalAlterConfigs numbers it."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One change of one key; DELETE needs no value."""

    name: str
    operation: int
    value: str | None = None


# A pool cannot grow or shrink further than this in one step.
_POOLS = ("num.io.threads", "num.recovery.threads.per.data.dir")
_NOT_A_LIST = "Can't {0} to key {1} because its type is not LIST."
_NOT_A_LIST_OF_BROKERS = "Config value {0} is not allowed for config key: {1}"


def alter_topic(config: BrokerConfig, stored: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """What a topic has set after the changes."""
    return check_topic(config, _altered(catalog.topic_setting, stored, changes))


def alter_group(config: BrokerConfig, stored: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """What a group has set after the changes."""
    altered = _altered(catalog.group_setting, stored, changes)
    try:
        check_group_overrides(config.values, altered)
    except ConfigError as problem:
        raise _refusal(ErrorCode.INVALID_CONFIG, str(problem)) from None
    return altered


def _altered(
    find: Callable[[str], Setting | None], stored: Mapping[str, str], changes: Sequence[Change]
) -> dict[str, str]:
    _check_changes(changes)
    altered = dict(stored)
    for change in changes:
        setting = find(change.name)
        if change.operation in {Operation.APPEND, Operation.SUBTRACT} and not _is_list(setting):
            word = Operation(change.operation).name
            raise _refusal(ErrorCode.INVALID_CONFIG, _NOT_A_LIST.format(word, change.name))
        _apply(altered, change, setting)
    return altered


def check_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, str]:
    """The overrides of a topic, where they are ones that it can have."""
    try:
        config.topic(overrides)
    except ConfigError as problem:
        raise _refusal(ErrorCode.INVALID_CONFIG, str(problem)) from None
    return dict(overrides)


def alter_broker(sources: Sources, changes: Sequence[Change], *, is_default: bool) -> dict[str, str]:
    """What a broker, or by `is_default` the cluster, has set after the changes."""
    _check_changes(changes)
    _check_known(change.name for change in changes if change.operation != Operation.DELETE)
    altered = dict(sources.dynamic_default if is_default else sources.dynamic_broker)
    for change in changes:
        setting = catalog.BROKER.get(catalog.base_name(change.name))
        if change.operation in {Operation.APPEND, Operation.SUBTRACT} and not _is_list(setting):
            word = Operation(change.operation).name.lower()
            raise _refusal(ErrorCode.INVALID_CONFIG, _NOT_A_LIST_OF_BROKERS.format(word, change.name))
        _apply(altered, change, setting)
    return check_broker(sources, altered, is_default=is_default)


def check_broker(sources: Sources, overrides: Mapping[str, str], *, is_default: bool) -> dict[str, str]:
    """The dynamic values of a broker or the cluster, where they are ones that can be.

    Values that are stored already stay, whatever they are: Kafka may have stored what odradek does not offer.
    """
    stored = sources.dynamic_default if is_default else sources.dynamic_broker
    new = {name: text for name, text in overrides.items() if stored.get(name) != text}
    _check_known(new)
    read_only = [name for name in new if _mode(name) is UpdateMode.READ_ONLY]
    _refuse_all("Cannot update these configs dynamically", read_only)
    try:
        for name, text in new.items():
            _setting(name).parse(text)
        changed = {"dynamic_default": overrides} if is_default else {"dynamic_broker": overrides}
        _check_pools(broker_config(sources), broker_config(replace(sources, **changed)))
    except ConfigError as problem:
        raise _refusal(ErrorCode.INVALID_REQUEST, str(problem)) from None
    return dict(overrides)


def _check_changes(changes: Sequence[Change]) -> None:
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise _refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    null = [one.name for one in changes if one.operation != Operation.DELETE and one.value is None]
    if null:
        raise _refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")
    for change in changes:
        if change.operation not in set(Operation):
            raise _refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")


def _apply(values: dict[str, str], change: Change, setting: Setting | None) -> None:
    value = change.value or ""
    if change.operation == Operation.SET:
        values[change.name] = value
    elif change.operation == Operation.DELETE:
        values.pop(change.name, None)
    elif setting is not None:
        # As in Kafka, the list begins as what is set here, or as the default: never as a value in between.
        text = values.get(change.name, setting.print(setting.default)) or ""
        before, operands = [part for part in text.split(",") if part], value.split(",")
        if change.operation == Operation.APPEND:
            after = [*before, *(part for part in dict.fromkeys(operands) if part not in before)]
        else:
            after = [part for part in before if part not in operands]
        values[change.name] = ",".join(after)


def _check_known(names: Iterable[str]) -> None:
    """Kafka accepts any name, for its plug-ins; here nothing would read it."""
    for name in names:
        known = catalog.broker_setting(name)
        if isinstance(known, NotOffered):
            message = f"{name} is not offered: {known.reason}"
        elif known is None and name not in catalog.DYNAMIC_ONLY:
            message = catalog.unknown_setting(name, catalog.BROKER)
        else:
            continue
        raise _refusal(ErrorCode.INVALID_CONFIG, message)


def _check_pools(before: BrokerConfig, after: BrokerConfig) -> None:
    for name in _POOLS:
        old, new = before.values[name], after.values[name]
        assert isinstance(old, int)
        assert isinstance(new, int)
        failed = f"Dynamic thread count update validation failed for {name}={new}, value should "
        if new < old / 2:
            raise ConfigError(f"{failed}be at least half the current value {old}")
        if new > old * 2:
            raise ConfigError(f"{failed}not be greater than double the current value {old}")


def _setting(name: str) -> Setting:
    return catalog.DYNAMIC_ONLY.get(name) or catalog.BROKER[catalog.base_name(name)]


def _mode(name: str) -> UpdateMode:
    return _setting(name).update_mode


def _is_list(setting: Setting | None) -> bool:
    return setting is not None and setting.kind is Kind.LIST


def _refuse_all(message: str, names: Sequence[str]) -> None:
    if names:
        raise _refusal(ErrorCode.INVALID_REQUEST, f"{message}: [{', '.join(names)}]")


def _refusal(error_code: ErrorCode, message: str) -> KafkaError:
    return KafkaError(message, error_code=error_code)
