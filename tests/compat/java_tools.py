"""Kafka's own command-line tools, run as bench/peers/run-class does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RUN_CLASS = Path(__file__).resolve().parents[2] / "bench" / "peers" / "run-class"
NEWEST, WITH_ZOOKEEPER = "4.3.1", "3.9.2"
# A small heap and the simplest compiler and collector: the tools live for a second.
QUICK_JVM = "-Xmx256M -XX:TieredStopAtLevel=1 -Xshare:auto"


def run_tool(
    tool: str, *arguments: str, stdin: str = "", version: str = NEWEST
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; a short name is of org.apache.kafka.tools."""
    return subprocess.run(
        [str(RUN_CLASS), tool, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"KAFKA_VERSION": version, "KAFKA_HEAP_OPTS": QUICK_JVM},
    )


def printed(tool: str, *arguments: str, stdin: str = "", version: str = NEWEST) -> str:
    """What a tool prints that must succeed."""
    done = run_tool(tool, *arguments, stdin=stdin, version=version)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
