"""Pipelines as YAML files: keys become keywords of functions of declare.py; errors name the key's line."""

from __future__ import annotations

import difflib
import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from odradek.spark.pipeline.definition import declare
from odradek.spark.pipeline.definition.arguments import DEFAULT_BOOTSTRAP, bootstrap_of, check_topic
from odradek.spark.pipeline.definition.errors import PipelineError, Place
from odradek.spark.pipeline.definition.model import PipelineModel, Sink, Source, SqlStep

_VARIABLE = re.compile(r"(\$?)\$\{(\w+)(?::-([^}]*))?\}")
"""${NAME} or ${NAME:-default}; a second dollar before it makes it literal."""

_WHOLE_NUMBER = re.compile(r"(0|-?[1-9]\d{0,17})\Z", re.ASCII)
_SINK_KINDS: dict[str, Callable[..., Sink]] = {
    "topic": declare.to_topic,
    "parquet": declare.to_parquet,
    "delta": declare.to_delta,
    "snapshot": declare.to_snapshot,
    "console": declare.to_console,
}


class _Block(dict[str, Any]):
    """A mapping of the file, with its place."""

    place: Place
    is_flow: bool = False  # written as {key: value}


def parse(text: str, file: str, environment: Mapping[str, str] | None = None) -> PipelineModel:
    """The pipeline of a YAML text."""
    root = _read(text, file, os.environ if environment is None else environment)
    known = [
        "name",
        "description",
        "bootstrap",
        "connector",
        "sources",
        "transforms",
        "sinks",
        "dead_letters",
    ]
    known += ["checkpoint", "trigger", "partitions", "restart", "spark"]
    _check_keys(root, known)
    for key in ("name", "sources", "sinks"):
        if key not in root:
            raise PipelineError(f"the key {key!r} is missing", root.place)
    given = {key: root[key] for key in root if key not in ("sources", "transforms", "sinks", "name")}
    if "dead_letters" in given:
        given["dead_letters"] = _dead_letters(root, given["dead_letters"])
    if "restart" in given:
        given["restart"] = _call(declare.restart, _block(root, "restart"))
    return declare.pipeline(
        root["name"],
        sources=[_source(name, block) for name, block in _blocks(root, "sources")],
        steps=[_step(name, given, root) for name, given in _block(root, "transforms").items()],
        sinks=[_sink(name, block) for name, block in _blocks(root, "sinks")],
        place=root.place,
        **given,
    )


def _source(name: str, block: _Block) -> Source:
    given = dict(block)
    if "files" in given:
        files: Source = _call(
            declare.files, block, given.pop("files"), given=given, renamed={"files": "path"}, name=name
        )
        return files
    topics = given.pop("topics", None)
    if "topic" in given:
        if topics is not None:
            raise PipelineError("topic and topics are both given; one is enough", block.place, "topic")
        topics = [given.pop("topic")]
    if not isinstance(topics, list | None):
        raise PipelineError("topics must be a list: [a, b]", block.place, "topics")
    if topics is None and "pattern" not in given:
        raise PipelineError("a source needs topic, topics, pattern or files", block.place)
    own = ("topic", "topics", "files")
    source: Source = _call(declare.topic, block, *(topics or ()), given=given, name=name, also=own)
    return source


def _step(name: str, given: Any, root: _Block) -> SqlStep:
    block_place = root["transforms"].place
    if isinstance(given, str):
        return declare.sql(name, given, place=Place(block_place.file, block_place.key_lines.get(name, 0)))
    if not isinstance(given, _Block):
        raise PipelineError("a transform is SQL, or a mapping with the key sql", block_place, name)
    _check_keys(given, ["sql", "watermark"])
    return declare.sql(
        name,
        given.get("sql", ""),
        watermark=given.get("watermark"),
        place=Place(
            given.place.file, given.place.key_lines.get("sql", given.place.line), given.place.key_lines
        ),
    )


def _sink(name: str, block: _Block) -> Sink:
    given = dict(block)
    kinds = [kind for kind in _SINK_KINDS if kind in given]
    if len(kinds) != 1:
        raise PipelineError(
            f"the sink {name} needs one of {', '.join(_SINK_KINDS)}, and has {' and '.join(kinds) or 'none'}",
            block.place,
        )
    target = given.pop(kinds[0])
    if "from" not in given:
        raise PipelineError(f"the sink {name} needs the key from: a source or a transform", block.place)
    given["source"] = given.pop("from")
    function = _SINK_KINDS[kinds[0]]
    targets = () if kinds[0] == "console" else (target,)
    sink: Sink = _call(function, block, *targets, given=given, name=name, also=(kinds[0], "from"))
    return sink


def _dead_letters(root: _Block, given: Any) -> Any:
    if isinstance(given, str):
        line = root.place.key_lines.get("dead_letters", root.place.line)
        return declare.dead_letters(given, place=Place(root.place.file, line))
    return _call(declare.dead_letters, _block(root, "dead_letters"))


def _call(
    function: Callable[..., Any],
    block: _Block,
    *positional: Any,
    given: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    also: tuple[str, ...] = (),
    **fixed: Any,
) -> Any:
    """Call a function of declare.py with the keys of a block, after checking their names."""
    keywords = dict(block if given is None else given)
    known = [name for name in inspect.signature(function).parameters if name not in ("place", *fixed)]
    shown = [name for name in known if name not in ("topics", "source", "path")] + list(also)
    for key in keywords:
        if key not in known:
            raise PipelineError(f"unknown key {key!r}{_meant(key, shown)}", block.place, key)
    missing = _missing(function, len(positional), {*keywords, *fixed, "place"})
    if missing is not None:
        raise PipelineError(f"the key {missing!r} is missing", block.place)
    lines = {(renamed or {}).get(key, key): line for key, line in block.place.key_lines.items()}
    place = Place(block.place.file, block.place.line, {**block.place.key_lines, **lines})
    return function(*positional, **keywords, **fixed, place=place)


def _missing(function: Callable[..., Any], positional: int, named: set[str]) -> str | None:
    """The first parameter that must be given and is not."""
    for place, (name, one) in enumerate(inspect.signature(function).parameters.items()):
        is_given = name in named or place < positional or one.kind is one.VAR_POSITIONAL
        if one.default is one.empty and not is_given:
            return name
    return None


def _check_keys(block: _Block, known: list[str]) -> None:
    for key in block:
        if key not in known:
            raise PipelineError(f"unknown key {key!r}{_meant(key, known)}", block.place, key)


def _meant(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"


def _block(root: _Block, key: str) -> _Block:
    found = root.get(key)
    if found is None:
        empty = _Block()
        empty.place = root.place
        return empty
    if not isinstance(found, _Block):
        raise PipelineError(f"{key} must be a mapping", root.place, key)
    return found


def _blocks(root: _Block, key: str) -> list[tuple[str, _Block]]:
    outer = _block(root, key)
    for name, one in outer.items():
        if not isinstance(one, _Block):
            raise PipelineError(f"{name} must be a mapping with keys such as topic", outer.place, name)
    return list(outer.items())


@dataclass(frozen=True, slots=True)
class SourceWithoutSchema:
    """A JSON source whose schema is to be inferred, and the line after which it belongs."""

    name: str
    topic: str
    bootstrap: str
    line: int


def without_schema(
    text: str, file: str, environment: Mapping[str, str] | None = None
) -> list[SourceWithoutSchema]:
    """The JSON sources that have no schema, from the end of the file on."""
    root = _read(text, file, os.environ if environment is None else environment)
    found = []
    for name, block in _blocks(root, "sources"):
        if block.get("format") != "json" or "schema" in block or "schema_file" in block or "files" in block:
            continue
        topics = [block["topic"]] if "topic" in block else block.get("topics")
        if not isinstance(topics, list) or not topics:
            raise PipelineError("a schema is inferred from a topic; name one", block.place)
        check_topic(topics[0], block.place, "topics")
        if block.is_flow:
            raise PipelineError(
                f"the schema of {name} cannot be put between braces: write its keys in lines of their own",
                block.place,
                "format",
            )
        owner = block if "bootstrap" in block else root
        bootstrap = bootstrap_of(owner.get("bootstrap"), owner.place) or DEFAULT_BOOTSTRAP
        found.append(SourceWithoutSchema(name, topics[0], bootstrap, block.place.key_lines["format"]))
    return found[::-1]


# From YAML to blocks with lines.


def _read(text: str, file: str, environment: Mapping[str, str]) -> _Block:
    try:
        import yaml  # noqa: PLC0415
    except ImportError:
        raise PipelineError("YAML files need the package PyYAML: pip install 'odradek[spark]'") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        raise PipelineError(
            f"this is not YAML: {problem}", Place(file, mark.line + 1 if mark else 0)
        ) from None
    except RecursionError:
        raise PipelineError("this is not YAML: it is nested too deeply", Place(file)) from None
    if not isinstance(node, yaml.MappingNode):
        raise PipelineError(
            "the file must be a mapping with the keys name, sources and sinks", Place(file, 1)
        )
    try:
        block = _value(node, file, environment, yaml.SafeLoader(""))
    except RecursionError:
        raise PipelineError("a part of the file contains itself", Place(file)) from None
    assert isinstance(block, _Block)
    return block


def _value(node: Any, file: str, environment: Mapping[str, str], loader: Any) -> Any:
    kind = type(node).__name__
    if kind == "MappingNode":
        return _mapping(node, file, environment, loader)
    if kind == "SequenceNode":
        return [_value(one, file, environment, loader) for one in node.value]
    place = Place(file, node.start_mark.line + 1)
    text = _VARIABLE.sub(lambda found: _variable(found, environment, place), node.value)
    if text != node.value:
        return _number_or_flag(text) if node.style is None else text
    if node.tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:null") and node.style is None:
        return None if node.tag.endswith("null") else node.value
    try:
        return loader.construct_object(node)
    except Exception as error:
        problem = getattr(error, "problem", None) or error
        raise PipelineError(f"{node.value!r} cannot be read: {problem}", place) from None


def _number_or_flag(text: str) -> str | int | bool:
    """What a text without quotes means, where no letter of it is lost: a password 007 stays one."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _WHOLE_NUMBER.match(text) else text


def _mapping(node: Any, file: str, environment: Mapping[str, str], loader: Any) -> _Block:
    block = _Block()
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if key in block:
            raise PipelineError(f"the key {key!r} is there twice", Place(file, line))
        lines[key] = line
        block[key] = _value(value_node, file, environment, loader)
    block.place = Place(file, node.start_mark.line + 1, lines)
    block.is_flow = bool(node.flow_style)
    return block


def _variable(found: re.Match[str], environment: Mapping[str, str], place: Place) -> str:
    is_literal, name, otherwise = found.groups()
    if is_literal:
        return found.group().removeprefix("$")
    value = environment.get(name, otherwise)
    if value is None:
        raise PipelineError(
            f"the environment variable {name} is not set; `${{{name}:-value}}` has a default", place
        )
    return value
