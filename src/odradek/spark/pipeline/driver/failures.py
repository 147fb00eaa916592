"""What went wrong, as one sentence that says what to do, and whether a restart can help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odradek.common.errors import OdradekError
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.driver.decoding.decoding import BAD_RECORD
from odradek.spark.pipeline.driver.frames import analysis_sentence


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed run."""

    sentence: str
    is_permanent: bool  # a restart would fail again


@dataclass(frozen=True, slots=True)
class _Known:
    pattern: re.Pattern[str]
    sentence: str
    is_permanent: bool = True


_PLAN = re.compile(r"=== Streaming Query ===.*?(?=\nJVM stacktrace:|\Z)", re.DOTALL)
"""What Spark adds about a query has the text of its plan, where any word may be."""


_OWN = re.compile(r"^\s*(?:[\w.$]+: )*odradek\.[\w.]*?(\w+): ", re.MULTILINE)
"""How an error of ours from a Python worker begins within Spark's text."""

_PERMANENT = frozenset(
    {
        "ConfigError",
        "DamagedRecords",
        "FencedByOtherDriver",
        "OtherCheckpoint",
        "OtherSubscription",
        "UnknownTopic",
        "WrongColumns",
        "WrongRows",
    }
)
"""Errors of ours that a restart meets again; their own sentence says what to do."""


def _known(pattern: str, sentence: str, is_permanent: bool = True) -> _Known:
    return _Known(re.compile(pattern, re.DOTALL), sentence, is_permanent)


_KNOWN = (
    _known(
        rf"({BAD_RECORD} in \S+, partition \d+, offset \d+: [^\n]*?)(?:\s*SQLSTATE|\n|$)",
        "{1}. Correct the schema, or set `bad_records: dead-letter` (or drop) for this source",
    ),
    _known(
        r"KAFKA_DATA_LOSS|Some data may have been lost|OffsetOutOfRange|DataLoss|RecordsGone|failOnDataLoss",
        "records that the checkpoint has not read yet are gone, by retention or as the topic is new: "
        "set `data_loss: continue` to go on with what is there, or begin with another checkpoint ({detail})",
    ),
    _known(
        r"UnknownTopicOrPartition|UNKNOWN_TOPIC_OR_PARTITION|does not host this topic",
        "a topic does not exist: create it, or correct the pipeline ({detail})",
    ),
    _known(
        r"STATE_STORE_\w*SCHEMA\w*|STATE_STORE_INCOMPATIBLE|STREAMING_STATEFUL_OPERATOR_NOT_MATCH",
        "the state in the checkpoint does not fit the pipeline any more: undo the change, or give the sink "
        "another name, and another directory if it has one, so that it begins anew ({detail})",
    ),
    _known(
        r"Failed to find data source: delta|DATA_SOURCE_NOT_FOUND.{0,200}delta|io\.delta\.sql",
        "Delta's jars are missing: run with `--jars delta-spark….jar,delta-storage….jar`",
    ),
    _known(
        r"(?:Failed to find|DATA_SOURCE_NOT_FOUND).{0,200}kafka",
        "the official connector's jars are missing: run with `--jars`, or leave out `connector: kafka`",
    ),
    _known(
        r"CONCURRENT_STREAM_LOG_UPDATE|Concurrent update to the log",
        "another run uses this checkpoint: stop it first",
    ),
    _known(
        r"Master must (?:either )?|Could not parse Master URL|Invalid master",
        "the master is not one that Spark knows: local[2], spark://HOST:PORT, yarn, k8s://… ({detail})",
    ),
    _known(
        r"(another driver has begun under the name [^\n]*|the name '[^\n]* belongs to a query with another "
        r"checkpoint[^\n]*|the checkpoint of [^\n]* is at micro-batch [^\n]*|no permission for the [^\n]*|"
        r"consumers use the group [^\n]*|the brokers refuse transactions of [^\n]*)",
        "{1}",
    ),
    _known(
        r"All masters are unresponsive",
        "the Spark master cannot be reached: is it running? ({detail})",
        False,
    ),
    _known(r"No space left on device|ENOSPC", "the disk is full ({detail})", False),
    _known(
        r"Permission denied|AccessControlException|AccessDeniedException|Read-only file system",
        "a file or directory may not be used: change its owner or its permissions, or name another directory "
        "({detail})",
    ),
    _known(
        r"NotADirectoryError|ParentNotDirectoryException|Not a directory|is not a directory",
        "a file is where a directory should be: move it away, or name another directory ({detail})",
    ),
)


def failure_of(error: BaseException) -> Failure:
    """Sort out what a query, a session or a step raised."""
    text = _PLAN.sub("", str(error))
    if isinstance(error, PipelineError):
        return Failure(text, True)
    own = type(error).__name__ if isinstance(error, OdradekError) else _own_class(text)
    if own in _PERMANENT:
        return Failure(sentence_in(text), True)
    for known in _KNOWN:
        found = known.pattern.search(text)
        if found is not None:
            first = found.group(1).strip() if found.groups() else ""
            sentence = known.sentence.replace("{1}", first).replace("{detail}", sentence_in(text))
            return Failure(sentence, known.is_permanent)
    is_bug = isinstance(error, TypeError | KeyError | AttributeError)
    is_permanent = is_bug or isinstance(error, OdradekError) or _is_analysis(error)
    return Failure(sentence_in(text) or type(error).__name__, is_permanent)


def _own_class(text: str) -> str | None:
    """The class of the error of ours that Spark passed on; the last one is what ended the task."""
    found = _OWN.findall(text)
    return found[-1] if found else None


def sentence_in(text: str) -> str:
    """The most telling line of a JVM or Python trace."""
    own = [line for line in text.splitlines() if re.match(r"\s*odradek\.[\w.]+: ", line)]
    if own:
        return own[-1].strip().partition(": ")[2].rstrip(".")
    python = [line for line in text.splitlines() if re.match(r"\w*(Error|Exception): \S", line)]
    if python and "Traceback (most recent call last)" in text:
        return python[-1].strip().rstrip(".")
    caused = re.findall(r"Caused by: [\w.$]*?(\w+): ([^\n]+)", text)
    if caused:
        return f"{caused[-1][0]}: {caused[-1][1]}".strip().rstrip(".")
    return analysis_sentence(text)[:400]


def _is_analysis(error: BaseException) -> bool:
    return type(error).__name__ in (
        "AnalysisException",
        "ParseException",
        "PySparkTypeError",
        "PySparkValueError",
    )
