"""The driver process of one run, which running/driver_process.py starts.

It gets orders as lines on standard input (`stop`) and reports lines of JSON on the descriptor of --events.
When standard input closes, whoever started it is gone, and it ends at once.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.load import MODULE_NAME, load
from odradek.spark.pipeline.definition.model import PipelineModel, TopicSource
from odradek.spark.pipeline.driver.checkpoint.checkpoints import letter_writers, prepare
from odradek.spark.pipeline.driver.checkpoint.clusters import cluster_ids
from odradek.spark.pipeline.driver.checkpoint.leaves import source_names
from odradek.spark.pipeline.driver.failures import failure_of
from odradek.spark.pipeline.driver.frames import frames_of
from odradek.spark.pipeline.driver.progress import LagWatch, Offsets, QueryWatch, lag_by_partition
from odradek.spark.pipeline.driver.session import driver_jvm_pid, new_session
from odradek.spark.pipeline.driver.sinks.sinks import planned_queries, start
from odradek.spark.pipeline.driver.sinks.topic_sinks import PlannedQuery
from odradek.spark.pipeline.driver.sources import reads_committed
from odradek.spark.pipeline.driver.stopping import BatchEnd, has_ended, only_logged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.25
STOPPING_LOOK_SECONDS = 0.02
LAG_SECONDS = 1.0
START_SECONDS = 60.0
START_ATTEMPTS = 5
NOT_CONNECTED = "Python worker failed to connect back"
"""What Spark says when a Python process took longer than 10 s to start, as on a busy machine."""
EXIT_DONE, EXIT_FAILED, EXIT_REFUSED = 0, 1, 2


class Reporter:
    """Writes events; one line of JSON each."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def report(self, event: str, **fields: Any) -> None:
        """Write one event."""
        self.row({"event": event, **fields})

    def row(self, row: Mapping[str, Any]) -> None:
        """Write one event that is a mapping already."""
        try:
            with self._lock:
                self._stream.write(json.dumps(row, default=str) + "\n")
        except (BrokenPipeError, ValueError):
            os._exit(EXIT_FAILED)  # nobody reads any more


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pipeline; the exit code is 0, 1 for a failure that may pass, 2 for one that stays."""
    options = _options(arguments)
    # Ctrl-C is for whoever started this process; it says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reporter = Reporter(options.events)
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_orders, args=(orders,), name="orders", daemon=True).start()
    try:
        _run(options, reporter, orders)
    except Exception as error:  # the root of this process: everything becomes one sentence
        failure = failure_of(error)
        reporter.report("failed", error=failure.sentence, is_permanent=failure.is_permanent)
        if not isinstance(error, PipelineError):
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return EXIT_REFUSED if failure.is_permanent else EXIT_FAILED
    return EXIT_DONE


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="odradek-pipeline-driver")
    parser.add_argument("--file", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--bootstrap")
    parser.add_argument("--master")
    parser.add_argument("--trigger", choices=["always", "available-now", "once"], default="always")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    return parser.parse_args(arguments)


def _read_orders(orders: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        orders.put(line.strip())
    if os.getpgid(0) == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(EXIT_FAILED)


def _run(options: argparse.Namespace, reporter: Reporter, orders: queue.SimpleQueue[str]) -> None:
    pipeline = load(options.file, options.bootstrap)
    settings = dict(pair.split("=", 1) for pair in options.settings)
    session = new_session(pipeline, options.master, settings)
    try:
        reporter.report("session", jvm_pid=driver_jvm_pid(session), master=session.sparkContext.master)
        run_pipeline(session, pipeline, options.trigger, reporter.row, orders)
    finally:
        with only_logged("the session did not stop"):
            session.stop()


def run_pipeline(
    session: SparkSession,
    pipeline: PipelineModel,
    trigger: str,
    report: Callable[[Mapping[str, Any]], None],
    orders: queue.SimpleQueue[str],
) -> None:
    """Run a pipeline in a session until it ends, is stopped by an order, or fails."""
    _pickle_file_by_value()
    frames = frames_of(session, pipeline)
    planned = planned_queries(session, pipeline, frames, letter_writers(session, pipeline))
    checkpoint_id = prepare(session, pipeline, planned, cluster_ids(pipeline))
    identity = f"{pipeline.name}-{checkpoint_id[:8]}"
    _Run(pipeline, planned, identity, _trigger(trigger, pipeline), report, orders).run()


def _pickle_file_by_value() -> None:
    """Workers cannot import a Python pipeline file, so that its functions travel as code."""
    module = sys.modules.get(MODULE_NAME)
    if module is not None:
        from pyspark import cloudpickle  # noqa: PLC0415

        cloudpickle.register_pickle_by_value(module)


def _trigger(chosen: str, pipeline: PipelineModel) -> dict[str, Any]:
    if chosen == "available-now":
        return {"availableNow": True}
    if chosen == "once":
        return {"once": True}
    return {"processingTime": pipeline.trigger} if pipeline.trigger else {}


class _Run:
    """The queries of one run, from their start to their end. Owned by the main thread."""

    def __init__(
        self,
        pipeline: PipelineModel,
        planned: Sequence[PlannedQuery],
        identity: str,
        trigger: Mapping[str, Any],
        report: Callable[[Mapping[str, Any]], None],
        orders: queue.SimpleQueue[str],
    ) -> None:
        self._pipeline = pipeline
        self._planned = planned
        self._identity = identity
        self._trigger = trigger
        self._report = report
        self._orders = orders
        self._queries: dict[str, Any] = {}
        self._read: dict[str, dict[str, Offsets]] = {}  # by query and source
        self._ends: list[BatchEnd] = []
        self._is_over = threading.Event()

    def run(self) -> None:
        """Start all queries and wait for their end; what fails in one ends all of them."""
        lag = threading.Thread(target=self._report_lag, name="lag", daemon=True)
        try:
            for planned in self._planned:
                self._start(planned)
            names = [planned.name for planned in self._planned]
            letters = [planned.name for planned in self._planned if planned.is_dead_letters]
            attached = [one.name for planned in self._planned for one in planned.letters]
            event = {"queries": names + attached, "dead_letters": letters + attached}
            self._report({"event": "running", **event})
            lag.start()
            self._watch()
        finally:
            self._is_over.set()
            self._stop_now()

    def _start(self, planned: PlannedQuery) -> None:
        """Start one query after another: each starts Python processes, which Spark waits for only 10 s."""
        for attempt in range(START_ATTEMPTS):
            query = start(planned, self._pipeline.checkpoint, self._identity, self._trigger)
            self._queries[planned.name] = query
            deadline = time.monotonic() + START_SECONDS
            while query.isActive and query.status["message"].startswith("Initializing"):
                if time.monotonic() > deadline or not self._orders.empty():
                    return
                time.sleep(0.05)
            error = None if query.isActive else query.exception()
            if error is None or NOT_CONNECTED not in str(error) or attempt == START_ATTEMPTS - 1:
                return

    def _watch(self) -> None:
        watches = [
            QueryWatch(
                planned.name,
                self._queries[planned.name],
                [one.name for one in planned.letters],
                source_names(planned, self._pipeline),
            )
            for planned in self._planned
        ]
        while True:
            is_over = all(has_ended(query) for query in self._queries.values())
            for watch in watches:
                for row in watch.look():
                    self._read[row["query"]] = row["offsets"]
                    self._report(row)
            for name, query in self._queries.items():
                error = None if query.isActive else query.exception()
                if error is not None:
                    self._report({"event": "query_failed", "query": name})
                    raise error
            if is_over:
                return
            self._obey()

    def _obey(self) -> None:
        for end in self._ends:
            end.look()
        try:
            order = self._orders.get(timeout=STOPPING_LOOK_SECONDS if self._ends else LOOK_SECONDS)
        except queue.Empty:
            return
        if order == "stop" and not self._ends:
            self._ends = [BatchEnd(query) for query in self._queries.values()]
            for end in self._ends:
                end.look()
            self._report({"event": "stopping"})

    def _stop_now(self) -> None:
        for end in self._ends:
            with only_logged("a query was not released"):
                end.release()
        for name, query in self._queries.items():
            with only_logged(f"the query {name} did not stop"):
                if not has_ended(query):
                    query.stop()

    def _report_lag(self) -> None:
        topics = {one.name: one for one in self._pipeline.sources if isinstance(one, TopicSource)}
        watches: dict[tuple[str, bool], LagWatch] = {}

        def lag_of(source: TopicSource, offsets: Offsets) -> dict[str, int]:
            question = (self._pipeline.bootstrap_of(source), reads_committed(source))
            if question not in watches:
                watches[question] = LagWatch(question[0], reads_committed=question[1])
            return watches[question].lag(offsets)

        while not self._is_over.wait(LAG_SECONDS):
            for name, read in list(self._read.items()):
                lag = {source: lag_of(topics[source], offsets) for source, offsets in read.items()}
                if any(lag.values()):
                    self._report({"event": "lag", "query": name, "lag": lag_by_partition(read, lag)})


if __name__ == "__main__":
    # Python's own end would wait for the lag thread's client.
    code = main()
    sys.stderr.flush()
    os._exit(code)
