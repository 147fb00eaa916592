"""Why a directory cannot be used, as a sentence that says what to do: what a restart would meet again."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.spark.pipeline.definition.errors import NOWHERE, PipelineError, Place

_ANOTHER = "or name another directory"
_NOT_ALLOWED = f"this user may not use {{path}}: change its owner or its permissions, {_ANOTHER}"
_IS_A_FILE = f"{{path}} is a file: move it away, {_ANOTHER}"
_REMEDIES = {
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.EROFS: f"the file system of {{path}} is read-only: mount it for writing, {_ANOTHER}",
    errno.ENOTDIR: _IS_A_FILE,
    errno.EEXIST: _IS_A_FILE,  # by a directory that should be made
    errno.EISDIR: f"{{path}} is a directory, and should be a file: move it away, {_ANOTHER}",
}


@contextmanager
def refused_directory(directory: str, place: Place = NOWHERE, key: str | None = None) -> Iterator[None]:
    """PipelineError for what stays wrong with a directory; an error that may pass is left as it is."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0)
        if remedy is None:
            raise
        path = error.filename or directory
        if error.errno == errno.ENOTDIR:
            path = _file_in(Path(path))
        sentence = f"the directory {directory} cannot be used, as {remedy.format(path=path)}"
        raise PipelineError(sentence, place, key) from error


def _file_in(path: Path) -> Path:
    """The part of a path that is a file, and not a directory."""
    return next((one for one in (path, *path.parents) if one.is_file()), path)
