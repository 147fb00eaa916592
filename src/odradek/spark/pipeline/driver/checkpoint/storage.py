"""Small files in directories, local or on a file system of Spark's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Storage(Protocol):
    """Where directories are."""

    def read(self, directory: str, name: str) -> str | None:
        """A file's text, None if there is none."""

    def write(self, directory: str, name: str, text: str) -> None:
        """Write a file; the directory is made."""

    def names(self, directory: str) -> list[str]:
        """What is in a directory; nothing if it does not exist."""


def storage_for(spark: SparkSession, path: str) -> Storage:
    """By the scheme of a path."""
    return _HadoopStorage(spark) if "://" in path else LocalStorage()


class LocalStorage:
    """Directories of this machine."""

    def read(self, directory: str, name: str) -> str | None:
        """A file's text, None if there is none."""
        try:
            return (Path(directory) / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, directory: str, name: str, text: str) -> None:
        """Write a file as a whole or not at all."""
        target = Path(directory) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f".{name}.new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, target)

    def names(self, directory: str) -> list[str]:
        """What is in a directory; nothing if it does not exist."""
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []


class _HadoopStorage:
    """Directories that only Spark can reach."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._configuration = spark._jsc.hadoopConfiguration()

    def read(self, directory: str, name: str) -> str | None:
        path, system = self._path(f"{directory}/{name}")
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, directory: str, name: str, text: str) -> None:
        path, system = self._path(f"{directory}/{name}")
        stream = system.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def names(self, directory: str) -> list[str]:
        path, system = self._path(directory)
        if not system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in system.listStatus(path))

    def _path(self, text: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(text)
        return path, path.getFileSystem(self._configuration)
