"""What DescribeConfigs returns for a topic, group or broker: every setting, its source and synonyms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.group import broker_name
from odradek.broker.settings.sources import Source, Sources, Synonym, broker_defaults, known_setting
from odradek.broker.settings.topic import TOPIC_SYNONYMS
from odradek.common.config import Setting

_UNKNOWN_TYPE = 0


class Row(NamedTuple):
    """One setting as the wire has it; a secret has no value."""

    name: str
    value: str | None
    is_read_only: bool
    is_sensitive: bool
    source: Source
    type_number: int
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Row]:
    """Every setting of a topic; its own values first among the synonyms."""
    log_config = config.topic(overrides)
    rows = []
    for setting in catalog.TOPIC.values():
        if setting.key in overrides or not setting.is_internal:
            value = setting.print(getattr(log_config, setting.key.replace(".", "_")))
            rows.append(_topic_row(config, overrides, setting, value))
    for not_offered in catalog.topic_not_offered().values():
        setting = not_offered.setting
        if setting.key in overrides or not_offered.is_shown:
            text = overrides.get(setting.key, setting.print(setting.default))
            rows.append(_topic_row(config, overrides, setting, _normalized(setting, text)))
    return sorted(rows)


def describe_group(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Row]:
    """Every setting of a group, whether it is there or not; its own values first among the synonyms."""
    not_offered = (one.setting for one in catalog.group_not_offered().values() if one.is_shown)
    return sorted(_group_row(config, overrides, one) for one in (*catalog.GROUP.values(), *not_offered))


def describe_broker(sources: Sources) -> list[Row]:
    """Every setting of a broker, and unknown ones that were set."""
    texts = sources.texts()
    shown = {one.key for one in catalog.BROKER.values() if not one.is_internal}
    shown.update(key for key, row in catalog.broker_not_offered().items() if row.is_shown)
    defaults = broker_defaults()
    return [
        _broker_row(sources, name, texts.get(name, defaults.get(name))) for name in sorted(shown | set(texts))
    ]


def describe_default_broker(sources: Sources) -> list[Row]:
    """What was set for all brokers of the cluster, and only that."""
    only = Sources(dynamic_default=sources.dynamic_default)
    rows = (_broker_row(only, name, text) for name, text in sorted(only.dynamic_default.items()))
    return [row._replace(synonyms=row.synonyms[:1]) for row in rows]


def _topic_row(
    config: BrokerConfig, overrides: Mapping[str, str], setting: Setting, value: str | None
) -> Row:
    synonyms = []
    if setting.key in overrides:
        synonyms.append(Synonym(setting.key, value, Source.TOPIC))
    if setting.key in TOPIC_SYNONYMS:
        synonyms += config.sources.synonyms(TOPIC_SYNONYMS[setting.key][0][0])
    return Row(
        name=setting.key,
        value=value,
        is_read_only=False,
        is_sensitive=setting.is_sensitive,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        type_number=setting.kind,
        synonyms=tuple(synonyms),
        documentation=setting.doc,
    )


def _group_row(config: BrokerConfig, overrides: Mapping[str, str], setting: Setting) -> Row:
    synonyms = config.sources.synonyms(broker_name(setting.key))
    if not synonyms:
        synonyms = [Synonym(setting.key, setting.print(setting.default), Source.DEFAULT)]
    if setting.key in overrides:
        own = setting.print(setting.parse(overrides[setting.key]))
        synonyms.insert(0, Synonym(setting.key, own, Source.GROUP))
    return Row(
        name=setting.key,
        value=synonyms[0].value,
        is_read_only=False,
        is_sensitive=setting.is_sensitive,
        source=synonyms[0].source,
        type_number=setting.kind,
        synonyms=tuple(synonyms),
        documentation=setting.doc,
    )


def _broker_row(sources: Sources, name: str, text: str | None) -> Row:
    setting = known_setting(name)
    is_sensitive = setting is None or setting.is_sensitive
    synonyms = sources.synonyms(name)
    return Row(
        name=name,
        value=None if is_sensitive else _normalized(setting, text),
        is_read_only=setting is None or setting.key != name or not setting.is_dynamic,
        is_sensitive=is_sensitive,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        type_number=_UNKNOWN_TYPE if setting is None else setting.kind,
        synonyms=tuple(synonyms),
        documentation=setting.doc if setting is not None and setting.key == name else None,
    )


def _normalized(setting: Setting | None, text: str | None) -> str | None:
    return text if setting is None or text is None else setting.print(setting.parse(text))
