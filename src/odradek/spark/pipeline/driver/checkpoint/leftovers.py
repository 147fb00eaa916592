"""Files that a killed micro-batch left in a Parquet directory: Spark ignores them, other readers would not.

Spark's file sink lists committed files in `_spark_metadata`; before a run, all other part files are removed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

_PART = re.compile(r"\.?part-\d{5}-[0-9a-f-]{36}[.-].*")
_LOG = "_spark_metadata"


def remove_leftovers(directory: str, *, is_new: bool) -> list[Path]:
    """Remove and return the part files that no micro-batch has committed. Only for local directories.

    `is_new`: the query has not committed a micro-batch yet. Otherwise a log that names no file of this
    directory tells nothing about them: the directory was moved, or its log was removed.
    """
    root = Path(directory)
    if "://" in directory or not root.is_dir():
        return []
    committed = committed_files(root)
    is_known = any(Path(one).is_relative_to(root.resolve()) for one in committed)
    if not is_known and (committed or not is_new):
        return []
    removed = []
    for path in root.rglob("*"):
        if _LOG in path.parts or not _PART.match(path.name) or not path.is_file():
            continue
        data_file = path.with_name(path.name.removeprefix(".").removesuffix(".crc"))
        if str(data_file.resolve()) not in committed:
            path.unlink()
            removed.append(path)
    return removed


def committed_files(root: Path) -> set[str]:
    """The files that the sink's log names."""
    committed: set[str] = set()
    log = root / _LOG
    if not log.is_dir():
        return committed
    for entry in log.iterdir():
        if not re.fullmatch(r"\d+(\.compact)?", entry.name):
            continue
        for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
            if line.startswith("{"):
                path = unquote(urlparse(json.loads(line)["path"]).path)
                committed.add(str(Path(path).resolve()))
    return committed
