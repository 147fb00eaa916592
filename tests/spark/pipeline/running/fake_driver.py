"""A driver without Spark: each start does what the next line of the file FAKE_DRIVER says, and removes it.

wait            run until it is asked to stop
hang            run, and go on with its micro-batch when it is asked to stop
slow            be asked to stop before Spark has started
done            run to the end of what is there
fail            fail for a reason that may pass
refuse          fail for a reason that stays
die             end without a word
orphan          be killed, and leave a JVM that goes on
linger          fail for a reason that may pass, and leave a JVM that ends a moment later

Each start notes in the file `left` whether the JVM of the start before was still there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from odradek.spark.pipeline.running.state_directory import process_start

_NOTHING = {"batch_ms": 500, "parts_ms": {}, "state_rows": 0, "state_bytes": 0, "late_rows": 0, "offsets": {}}
_JVM = "import sys, time; sys.stdin.read(); time.sleep(float(sys.argv[1]))"


def begin_jvm(lives_s: float) -> int:
    """Start what stands for the JVM: it notices by its standard input that the driver is gone."""
    command = [sys.executable, "-c", _JVM, str(lives_s)]
    return subprocess.Popen(command, stdin=subprocess.PIPE).pid


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int)
    given, arguments = parser.parse_known_args()
    events = os.fdopen(given.events, "w", buffering=1)
    plan = Path(os.environ["FAKE_DRIVER"])
    host = os.environ.get("SPARK_LOCAL_IP", "")
    (plan.parent / "arguments").write_text(json.dumps([*arguments, host]))
    step, _, rest = plan.read_text().partition("\n")
    plan.write_text(rest)
    jvm = plan.parent / "jvm"
    if jvm.exists():
        pid, start = jvm.read_text().split()
        (plan.parent / "left").write_text(str(process_start(int(pid)) == start))

    def report(event: str, **fields: Any) -> None:
        events.write(json.dumps({"event": event, **fields}) + "\n")

    if step == "die":
        return 3
    if step == "slow":
        (plan.parent / "begun").touch()
        return int(sys.stdin.readline() != "stop\n")
    if step in ("orphan", "linger"):
        pid = begin_jvm(1 if step == "linger" else 1000)
        jvm.write_text(f"{pid} {process_start(pid)}")
        report("session", jvm_pid=pid, master="local[2]")
        if step == "linger":
            report("failed", error="it did linger", is_permanent=False)
            return 1
        os.kill(os.getpid(), signal.SIGKILL)
    report("session", jvm_pid=os.getpid(), master="local[2]")
    if step in ("fail", "refuse"):
        report("failed", error=f"it did {step}", is_permanent=step == "refuse")
        return 2 if step == "refuse" else 1
    report("running", queries=["all"], dead_letters=[])
    report("progress", query="all", batch=0, rows_in=30, rows_out=20, **_NOTHING)
    for lag in (10, 400):
        report("lag", query="all", lag={"rows-0": lag})
    if step == "done":
        print("a row of a console sink", flush=True)
        return 0
    was_asked = sys.stdin.readline() == "stop\n"
    report("stopping")
    while step == "hang":
        time.sleep(1)
    return int(not was_asked)


if __name__ == "__main__":
    sys.exit(main())
