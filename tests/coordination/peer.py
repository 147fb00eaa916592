"""A process with one session at a store: takes commands as lines of JSON, answers with result or error.

peer.py URL SESSION_TIMEOUT_MS
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from functools import partial
from typing import Any

from odradek.coordination.embedded.store import SqliteStore
from odradek.coordination.embedded.worker import Write
from odradek.coordination.errors import BadVersion, StoreError
from odradek.coordination.store import Create, Store
from odradek.coordination.urls import open_store
from odradek.coordination.znodes import Draft


async def main(url: str, session_timeout_ms: int) -> None:
    store = await open_store(url, session_timeout_ms=session_timeout_ms, connection_timeout_ms=30_000)
    states: list[str] = []
    store.add_listener(lambda state: states.append(state.value))
    print(json.dumps("ready"), flush=True)
    commands = read_lines()
    while line := await commands.get():
        name, *arguments = json.loads(line)
        if name == "states":
            answer: Any = states
        else:
            answer = await obey(store, name, arguments)
        print(json.dumps(answer), flush=True)
    await store.close()


async def obey(store: Store, name: str, arguments: list[Any]) -> Any:
    try:
        match name, arguments:
            case "create", [path]:
                return (await store.create(path, b"of a peer")).path
            case "create_ephemeral", [path]:
                return (await store.create(path, ephemeral=True)).path
            case "set", [path, text]:
                return (await store.set(path, text.encode())).version
            case "get", [path]:
                return (await store.get(path)).payload.decode()
            case "increment", [path, times]:
                return await increment(store, path, times)
            case "stop_in_a_write", [path]:
                return await stop_in_a_write(store, path)
            case "fork_a_sleeper", []:
                return fork_a_sleeper()
    except StoreError as error:
        return type(error).__name__
    raise AssertionError(f"unknown command {name} {arguments}")


async def increment(store: Store, path: str, times: int) -> int:
    """Count up by read and conditional write; returns how often another process came first."""
    conflicts = 0
    for _ in range(times):
        while True:
            payload, stat = await store.get(path)
            try:
                await store.set(path, str(int(payload) + 1).encode(), stat.version)
            except BadVersion:
                conflicts += 1
            else:
                break
    return conflicts


async def stop_in_a_write(store: Store, path: str) -> str:
    """Stop this process inside the transaction, which locks the database."""
    assert isinstance(store, SqliteStore)

    def run(draft: Draft) -> str:
        draft.apply_all([Create(path)])
        os.kill(os.getpid(), signal.SIGSTOP)
        return path

    result: str = await store._submit(partial(Write, run=run))
    return result


def fork_a_sleeper() -> int:
    """A child without exec keeps our descriptors; the test ends it."""
    child = os.fork()
    if child == 0:
        os.close(sys.stdin.fileno())
        os.close(sys.stdout.fileno())
        threading.Event().wait(60)
        os._exit(0)
    return child


def read_lines() -> asyncio.Queue[str]:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
