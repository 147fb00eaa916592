"""One measured run of one client library, in a process of its own: what it uses is its alone.

python bench/clients/worker.py MODULE TASK_AS_JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clients.task import ClientAdapter, Task

if __name__ == "__main__":
    adapter = cast(ClientAdapter, import_module(f"clients.adapters.{sys.argv[1]}"))
    task = Task(**json.loads(sys.argv[2]))
    print(json.dumps(asdict(getattr(adapter, task.kind)(task))))
