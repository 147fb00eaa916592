"""CRC-32C, done by the processor: the C module of the package `crc32c`.

Importing the package makes it look its own version up, for which Python loads its metadata and mail modules:
more than a tenth of the time in which a broker starts. So its C module is loaded by itself where that works.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Crc32c = Callable[..., int]


def _load_alone() -> Crc32c | None:
    package = find_spec("crc32c")
    if package is None:
        return None
    found = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    function: Crc32c | None = getattr(module, "crc32c", None)
    return function


def _load() -> Crc32c:
    alone = _load_alone()
    if alone is not None:
        return alone
    from crc32c import crc32c as packaged  # noqa: PLC0415

    return packaged


crc32c = _load()
