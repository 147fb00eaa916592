"""Every offered setting has an effect: some code outside the declarations reads it.

The source is searched for attributes of configuration objects. What a property of a configuration reads
counts where some other file reads the property; a check of values against each other does not count.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import odradek
from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.declarations.groups import GroupConfig
from odradek.broker.settings.group import bounds_of, broker_name
from odradek.broker.settings.topic import TOPIC_SYNONYMS
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.producer.config import ProducerConfig
from odradek.common.config import Kind, setting, settings_of
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.config import LogConfig
from odradek.log.directories.manager_config import LogManagerConfig

SOURCE = Path(odradek.__file__).parent
CLIENTS = ("client", "console", "spark", "cli")
# Their effect is that a start is refused.
EFFECT_IS_A_REFUSAL = {"broker.id.generation.enable", "odradek.allow.unauthenticated"}


@cache
def attributes_read(side: str) -> frozenset[str]:
    """Attributes of configuration objects that the code of brokers, or of clients, reads."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).parts
        if (inside[0] in CLIENTS) is (side == "clients") and inside[:2] != ("broker", "settings"):
            found.update(_read_in(ast.parse(path.read_text())))
    return frozenset(found)


def _read_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_config(node.value):
            yield node.attr


def _is_config(expression: ast.expr) -> bool:
    """Whether an expression is named as configuration objects are: `self._config`, `services.config()`."""
    if isinstance(expression, ast.Call):
        return _is_config(expression.func)
    name = getattr(expression, "attr", getattr(expression, "id", ""))
    return name.endswith(("config", "settings", "defaults")) or name in {"manager", "log_manager", "own"}


def read_fields(declaration: type[Any], side: str) -> set[str]:
    """The fields of a configuration that are read, by name or through its methods and properties."""
    methods = {
        node.name: {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and _is_self(one)}
        for node in ast.walk(ast.parse(inspect.getsource(declaration)))
        if isinstance(node, ast.FunctionDef)
    }
    read = set(attributes_read(side))
    for _ in methods:  # one round for each link that a chain of methods can have
        read.update(*(used for method, used in methods.items() if method in read))
    return read


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def unread(declaration: type[Any], side: str = "brokers", *, through: type[Any] | None = None) -> set[str]:
    """The keys of a class of settings that nothing reads; `through` is the class that inherits its fields."""
    read = read_fields(through or declaration, side)
    return {key for key in settings_of(declaration) if key.replace(".", "_") not in read}


def test_somebody_reads_every_setting_of_topics_and_groups() -> None:
    assert unread(LogConfig) == set()
    assert unread(GroupConfig) == set()


def test_somebody_reads_every_setting_of_brokers() -> None:
    behind_topics = {name for synonyms in TOPIC_SYNONYMS.values() for name, _ in synonyms}
    behind_groups = {name for key in settings_of(GroupConfig) for name in (broker_name(key), *bounds_of(key))}
    declarations = [declaration for theme in catalog.THEMES.values() for declaration in theme]
    found = set[str]()
    for declaration in declarations:
        found |= unread(
            declaration,
            through=declaration if declaration in {CleanerConfig, LogManagerConfig} else BrokerConfig,
        )
    found -= behind_topics | behind_groups

    assert found == EFFECT_IS_A_REFUSAL


def test_somebody_reads_what_can_only_be_set_at_run_time() -> None:
    read = read_fields(BrokerConfig, "brokers")

    assert {key for key in catalog.DYNAMIC_ONLY if key.replace(".", "_") not in read} == set()


def test_somebody_reads_every_setting_of_clients() -> None:
    for declaration in (ConsumerConfig, ProducerConfig):
        assert unread(declaration, "clients") == set(), declaration


@dataclass
class WithoutReader:
    """Settings as somebody might declare them, and forget to read the second."""

    preallocate: bool = setting("preallocate", Kind.BOOLEAN, default=False, doc="Read by the log.")

    never_read_by_anybody: int = setting("never.read.by.anybody", Kind.INT, 1, "Nothing.")


def test_a_setting_without_a_reader_is_found() -> None:
    assert unread(WithoutReader) == {"never.read.by.anybody"}
