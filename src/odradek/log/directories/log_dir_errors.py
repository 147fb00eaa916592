"""Why a directory of `log.dirs` cannot be used, and what to do about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from odradek.common.errors import ConfigError, OdradekError

_ANOTHER = "or name another directory in log.dirs (--data-dir)"
_REMEDIES = {
    errno.EACCES: f"this user may not write there; change its owner or its permissions, {_ANOTHER}",
    errno.EPERM: f"this user may not write there; change its owner or its permissions, {_ANOTHER}",
    errno.EROFS: f"its file system is read-only; mount it for writing, {_ANOTHER}",
    errno.ENOSPC: f"its disk is full; free some space, {_ANOTHER}",
    errno.EDQUOT: f"the quota of this user is used up; free some space, {_ANOTHER}",
}


class UnusableDirectory(OdradekError):
    """A directory cannot hold logs; `errno` is the system's."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        super().__init__(_sentence(path, error))


def check_different(log_dirs: Sequence[str]) -> None:
    """ConfigError if two names mean the same directory, or if there is none."""
    if not log_dirs:
        raise ConfigError("log.dirs must name a directory")
    names: dict[str, str] = {}
    for path in log_dirs:
        real = os.path.realpath(path)
        if real in names:
            both = f"{names[real]} and {path}"
            raise ConfigError(f"log.dirs={','.join(log_dirs)}: {both} are one directory; name it once")
        names[real] = path


def make_directory(path: str) -> None:
    """Create a directory and its parents if missing; UnusableDirectory if that fails."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UnusableDirectory(path, error) from error


def _sentence(path: str, error: OSError) -> str:
    obstacle = _obstacle(path)
    if obstacle is not None:
        where = "" if obstacle == path else f"{path}: "
        kind = "a file, not a directory" if os.path.exists(obstacle) else "a link to nowhere"
        return f"{where}{obstacle} is {kind}; move it away, {_ANOTHER}"
    problem = error.strerror or str(error)
    return f"{path}: {_REMEDIES.get(error.errno or 0, f'{problem}; check its disk, {_ANOTHER}')}"


def _obstacle(path: str) -> str | None:
    """The path itself or a parent, if that exists and is not a directory."""
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path if path and not os.path.isdir(path) else None
