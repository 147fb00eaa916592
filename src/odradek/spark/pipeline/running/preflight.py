"""Checks before Spark is started, which takes long: Java, PySpark, brokers and topics."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigResource, ResourceType
from odradek.client.errors import BrokerError
from odradek.common.errors import ConfigError, OdradekError
from odradek.spark.pipeline.definition.errors import PipelineError, Place
from odradek.spark.pipeline.definition.model import DeadLetters, PipelineModel, TopicSink, TopicSource
from odradek.spark.pipeline.driver.sources import topic_options
from odradek.spark.sink.options import sink_options
from odradek.spark.source.options import source_options

_OURS = "odradek"
_LEAST_JAVA = 17
_MAKES_TOPICS = "auto.create.topics.enable"


class CannotRun(OdradekError):
    """Something that a run needs is missing."""


def check_machine() -> None:
    """CannotRun unless PySpark and Java are there."""
    if importlib.util.find_spec("pyspark") is None:
        raise CannotRun("PySpark is not installed: pip install 'odradek[spark]'")
    check_java(os.environ)


def check_java(environment: Mapping[str, str]) -> None:
    """CannotRun unless there is a Java that Spark can use."""
    home = environment.get("JAVA_HOME")
    if home and not os.access(os.path.join(home, "bin", "java"), os.X_OK):
        raise CannotRun(f"JAVA_HOME is {home}, which has no bin/java: install Java 17, or correct it")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    if java is None:
        raise CannotRun("Java was not found: install Java 17 (a JRE is enough), or set JAVA_HOME")
    version = _java_version(java)
    if version is not None and version < _LEAST_JAVA:
        raise CannotRun(
            f"{java} is Java {version}, and Spark needs {_LEAST_JAVA}: install it, or set JAVA_HOME"
        )


def _java_version(java: str) -> int | None:
    """17 for version "17.0.9", 8 for version "1.8.0_392"; None if it says something else."""
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def check_options(pipeline: PipelineModel) -> None:
    """PipelineError for options that our data source refuses; those of Spark's own are checked by Spark."""
    for part in (*pipeline.sources, *pipeline.sinks):
        try:
            if isinstance(part, TopicSource) and pipeline.connector_of(part) == _OURS:
                source_options(topic_options(pipeline, part), is_stream=not part.is_table)
            elif isinstance(part, TopicSink) and pipeline.connector_of(part) == _OURS:
                servers = {"kafka.bootstrap.servers": pipeline.bootstrap_of(part)}
                sink_options(servers | dict(part.options))
        except ConfigError as error:
            raise PipelineError(str(error), part.place, "options") from None


def check_topics(pipeline: PipelineModel) -> None:
    """PipelineError for a topic that is not there nor would be made; a client's error without brokers."""
    known: dict[str, list[str]] = {}
    for source in pipeline.sources:
        if not isinstance(source, TopicSource):
            continue
        servers = pipeline.bootstrap_of(source)
        if servers not in known:
            known[servers] = topic_names(servers)
        _check_source(source, known[servers], servers)
    written: list[tuple[TopicSink | DeadLetters, str | None, str]] = [
        (sink, sink.topic, "topic") for sink in pipeline.sinks if isinstance(sink, TopicSink)
    ]
    if pipeline.dead_letters is not None:
        written.append((pipeline.dead_letters, pipeline.dead_letters.topic, "dead_letters"))
    for part, topic, key in written:
        servers = pipeline.bootstrap_of(part)
        if servers not in known:
            known[servers] = topic_names(servers)
        if topic is not None and topic not in known[servers] and not makes_topics(servers):
            raise _missing(topic, known[servers], servers, part.place, key)


def topic_names(servers: str) -> list[str]:
    """All topics of a cluster."""
    admin = Admin(bootstrap_servers=servers, client_id="odradek-pipeline")
    try:
        admin.connect()
        return [one.name for one in admin.list_topics(include_internal=True)]
    finally:
        admin.close()


def makes_topics(servers: str) -> bool:
    """Whether the brokers make a topic when records are sent to it; also if they do not tell."""
    with Admin(bootstrap_servers=servers, client_id="odradek-pipeline") as admin:
        broker = ConfigResource(ResourceType.BROKER, str(admin.describe_cluster().brokers[0].broker_id))
        found = admin.describe_configs([broker], names=[_MAKES_TOPICS])[broker]
    setting = None if isinstance(found, BrokerError) else found.get(_MAKES_TOPICS)
    return setting is None or setting.value != "false"


def _missing(topic: str, names: list[str], servers: str, place: Place, key: str) -> PipelineError:
    near = difflib.get_close_matches(topic, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"`odradek topics create {topic}` makes it"
    return PipelineError(f"there is no topic {topic!r} at {servers}; {hint}", place, key)


def _check_source(source: TopicSource, names: list[str], servers: str) -> None:
    if source.pattern is not None:
        if not any(source.reads(name) for name in names):
            raise PipelineError(f"no topic of {servers} matches {source.pattern!r}", source.place, "pattern")
        return
    for topic in source.topics:
        if topic not in names:
            key = "topic" if "topic" in source.place.key_lines else "topics"
            raise _missing(topic, names, servers, source.place, key)
