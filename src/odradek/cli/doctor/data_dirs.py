"""What is wrong with a data directory and its store, seen without a broker. Nothing is changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cli.doctor.finding import Finding, Severity
from odradek.coordination import paths
from odradek.coordination.embedded.lock_owners import write_lock_owners
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.payloads import decode_cluster_id
from odradek.coordination.urls import SqliteUrl, parse_url
from odradek.log.directories.log_directory import LogDirectory, recorded_properties
from odradek.log.errors import InconsistentMetaProperties
from odradek.log.files.file_system import FileSystem

_LOW_SPACE = 0.05


def diagnose_data(config: BrokerConfig) -> list[Finding]:
    """Findings about the log directories and the embedded store of a configuration."""
    found: list[Finding] = []
    for path in map(Path, config.data_dirs):
        found += _of_directory(path)
    identity = _identity(config, found)
    url = parse_url(config.coordination_url)
    if isinstance(url, SqliteUrl):
        # `start --brokers N` has the store beside the brokers' directories.
        beside = url.path.parent.parent / url.path.name
        is_beside = not config.is_explicit("odradek.coordination") and not url.path.exists()
        found += _of_store(beside if is_beside and beside.exists() else url.path, identity.cluster_id)
    return sorted(found, key=lambda one: one.severity is not Severity.ERROR)


class _Identity(NamedTuple):
    broker_id: int | None
    cluster_id: str | None


def _of_directory(path: Path) -> Iterator[Finding]:
    if not path.is_dir():
        yield Finding(
            Severity.ERROR,
            f"log directory {path} does not exist",
            "no such directory" if not path.exists() else "it is not a directory",
            "name the right one by --data-dir or log.dirs; `odradek start` makes a new one",
        )
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            Severity.ERROR,
            f"log directory {path} cannot be read and written by this user",
            "its permissions forbid it",
            "run the broker as the owner of the directory, or change the permissions",
        )
        return
    usage = shutil.disk_usage(path)
    if usage.free < _LOW_SPACE * usage.total:
        yield Finding(
            Severity.WARNING,
            f"the disk of log directory {path} is nearly full",
            f"{usage.free >> 20} of {usage.total >> 20} MiB are free; a full disk refuses writes",
            "free some space, or add a directory to log.dirs",
        )


def _identity(config: BrokerConfig, found: list[Finding]) -> _Identity:
    """Whose directories these are; findings where they contradict each other or the configuration."""
    existing = [path for path in config.data_dirs if os.path.isdir(path)]
    try:
        recorded = recorded_properties(existing, FileSystem())
        for path in existing:
            with contextlib.suppress(OSError):
                mine = LogDirectory(path, FileSystem()).read_meta_properties()
                if mine is not None and recorded is not None and mine.cluster_id != recorded.cluster_id:
                    raise InconsistentMetaProperties(
                        f"{path} belongs to cluster {mine.cluster_id}, the first directory to "
                        f"{recorded.cluster_id}"
                    )
    except InconsistentMetaProperties as error:
        found.append(
            Finding(
                Severity.ERROR,
                "meta.properties of the log directories do not fit together",
                str(error),
                "name only directories of one broker in log.dirs",
            )
        )
        return _Identity(None, None)
    if recorded is None:
        return _Identity(None, None)
    is_given = config.is_explicit("broker.id") or config.is_explicit("node.id")
    if is_given and config.given_broker_id not in (None, recorded.broker_id):
        found.append(
            Finding(
                Severity.ERROR,
                f"the log directories belong to broker {recorded.broker_id}, not {config.given_broker_id}",
                "meta.properties has the id of the broker that made them",
                f"set broker.id={recorded.broker_id}, or name other directories",
            )
        )
    return _Identity(recorded.broker_id, recorded.cluster_id)


def _of_store(path: Path, cluster_id: str | None) -> Iterator[Finding]:
    if not path.exists():
        if cluster_id is not None:
            yield Finding(
                Severity.ERROR,
                f"the store {path} does not exist",
                f"the log directories belong to cluster {cluster_id}, whose topics and settings were in it",
                "name the right one by odradek.coordination, or restore a copy; without one, `odradek start` "
                "makes the topics again from the logs, with the default settings",
            )
        return
    try:
        stored = _stored_cluster_id(path)
    except (sqlite3.Error, DamagedPayload) as error:
        yield Finding(
            Severity.ERROR,
            f"the store {path} cannot be read",
            str(error),
            "restore a copy, or move it away to start empty",
        )
        return
    if stored is not None and cluster_id is not None and stored != cluster_id:
        yield Finding(
            Severity.ERROR,
            f"the store {path} belongs to another cluster",
            f"it has cluster {stored}, the log directories {cluster_id}",
            "name the store of that cluster by odradek.coordination, or other directories by log.dirs",
        )
    stopped = [pid for pid in write_lock_owners(path) if _is_stopped(pid)]
    if stopped:
        pids = ", ".join(map(str, stopped))
        yield Finding(
            Severity.ERROR,
            f"the store {path} is locked by a stopped process (pid {pids})",
            "it was stopped in the middle of a write; the others kill it when its session is over",
            f"resume it (kill -CONT {pids}), or end it (kill -KILL {pids})",
        )


def _stored_cluster_id(path: Path) -> str | None:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=1)) as database:
        query = "SELECT payload FROM node WHERE path = ?"
        row = database.execute(query, (paths.CLUSTER_ID,)).fetchone()
    return None if row is None else decode_cluster_id(row[0])


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False
