"""`odradek start --brokers N`: several brokers on this machine, each in a process of its own.

Ids 0 to N-1; ports p to p+N-1 (0 stays 0: any free one); `DATA/broker-<id>`; the store in DATA. The parent
forwards SIGTERM and SIGINT and restarts nothing: after a broker is killed, the others continue.
"""

from __future__ import annotations

import logging
import mmap
import os
import re
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.load import Given, load
from odradek.cli.forked_brokers import Parent
from odradek.cli.options import UsageProblem
from odradek.cli.serving import ONE_SIGNAL_S

_PORT = re.compile(r":([0-9]+)\Z")


def load_each(
    shared: BrokerConfig,
    count: int,
    properties: str | None,
    overrides: Sequence[str],
    defaults: Sequence[tuple[str, str]],
    options: Sequence[Given],
) -> list[BrokerConfig]:
    """The configurations of the brokers; UsageProblem for settings that several on one machine cannot have.

    `shared` is what the other arguments make for a single one.
    """
    if any(shared.is_explicit(key) for key in ("broker.id", "node.id")) and shared.given_broker_id != -1:
        raise UsageProblem("--brokers gives the brokers the ids 0, 1, ...; leave out broker.id")
    if len(shared.data_dirs) > 1:
        raise UsageProblem("--brokers needs one data directory; each broker gets a directory inside it")
    used = [endpoint.port for endpoint in shared.endpoints if endpoint.port]
    if len({port + index for port in used for index in range(count)}) < len(used) * count:
        raise UsageProblem(
            f"the ports of {count} brokers overlap: leave {count} ports to the next listener, or use port 0"
        )
    return [
        load(properties, [*overrides, *_own_settings(shared, broker_id)], defaults, options).config
        for broker_id in range(count)
    ]


def _own_settings(shared: BrokerConfig, broker_id: int) -> list[str]:
    """What differs from broker to broker, as `--set` takes it."""
    own = {
        "broker.id": str(broker_id),
        "log.dirs": str(Path(shared.data_dirs[0]) / f"broker-{broker_id}"),
        "listeners": _shifted(shared.listeners, broker_id),
        "odradek.coordination": shared.coordination_url,
    }
    if shared.advertised_listeners is not None:
        own["advertised.listeners"] = _shifted(shared.advertised_listeners, broker_id)
    if shared.odradek_metrics_listener is not None:
        own["odradek.metrics.listener"] = _shifted([shared.odradek_metrics_listener], broker_id)
    return [f"{key}={text}" for key, text in own.items()]


def _shifted(endpoints: Sequence[str], by: int) -> str:
    """The same endpoints with later ports; 0 stays 0."""

    def shift(match: re.Match[str]) -> str:
        port = int(match[1])
        return f":{port + by if port else 0}"

    return ",".join(_PORT.sub(shift, endpoint) for endpoint in endpoints)


class _Children:
    """The brokers that run. Used by the main thread, and by its signal handlers."""

    def __init__(self, count: int) -> None:
        self.ids_by_pid: dict[int, int] = {}
        self.is_stopping = False
        self._stopped_at = -ONE_SIGNAL_S
        self._ready = mmap.mmap(-1, count)  # shared with the children: one byte each

    def on_ready(self, broker_id: int, addresses: list[str]) -> None:
        """Called in the child."""
        self._ready[broker_id] = 1
        # One write, so that lines of several processes do not mix.
        os.write(1, f"ready: {','.join(addresses)}\n".encode())

    def was_ready(self, broker_id: int) -> bool:
        return self._ready[broker_id] == 1

    def stop(self) -> None:
        """Forward SIGTERM; a second one ends a broker at once.

        A process and then its group are signalled by timeout(1), which means one signal.
        """
        now = time.monotonic()
        if now - self._stopped_at < ONE_SIGNAL_S:
            return
        self._stopped_at = now
        self.is_stopping = True
        for pid in list(self.ids_by_pid):
            os.kill(pid, signal.SIGTERM)


def run_brokers(configs: Sequence[BrokerConfig]) -> int:
    """Run them until a signal stops all, or all have exited; returns the exit code."""
    children, parent = _Children(len(configs)), Parent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: children.stop())
    for broker_id, config in enumerate(configs):
        pid = parent.fork(
            config, partial(children.on_ready, broker_id), prepare=partial(_name_log_lines, broker_id)
        )
        children.ids_by_pid[pid] = broker_id
        if children.is_stopping:
            children.stop()
            break
    exit_code = 0
    while children.ids_by_pid:
        pid, status = os.waitpid(-1, 0)
        broker_id = children.ids_by_pid.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == 0 and children.is_stopping:
            continue
        exit_code = 1
        click.echo(f"Error: {_report(children, broker_id, code)}", err=True)
        if not children.was_ready(broker_id) and not children.is_stopping:
            children.stop()
    return exit_code


def _name_log_lines(broker_id: int) -> None:
    """Several brokers write to one stderr."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s broker {broker_id}: %(message)s"))


def _report(children: _Children, broker_id: int, code: int) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
    if not children.ids_by_pid:
        return f"broker {broker_id} {how}"
    if children.is_stopping:
        return f"broker {broker_id} {how} while all were stopped"
    if not children.was_ready(broker_id):
        return f"broker {broker_id} {how} before it was ready; the others are stopped"
    return f"broker {broker_id} {how}; it is not restarted, and the others continue"
