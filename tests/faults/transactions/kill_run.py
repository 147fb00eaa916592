"""One run: brokers and clients are killed at each step of transactions, and the history is judged.

Every round is one client with three transactions. At one step of the second one a process is killed, up to
20 ms after the request has gone out: the coordinator, a leader, the coordinator of the group, or the client.
Then the next client goes on, at once under the same transactional id, or under another one, so that only the
time-out ends what the killed client left open.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from broker.wire import WireClient, a_topic
from faults.cluster.worker import Work, Worker
from faults.partitioned.transactional_workers import CommittedReader, FinalCommittedReader
from faults.transaction_client import ClientWithOffsets
from faults.transactions.jobs import DONE, GROUP, PARTITIONS, STEPS_OF_V1, STEPS_OF_V2, TOPIC, Job
from faults.transactions.monitor import Monitor
from faults.undecided import wait_until_decided
from odradek.protocol.api_key import ApiKey
from odradek.testing import Cluster
from odradek.testing.history.operations import CLIENT_KILLED, Fault
from odradek.testing.history.recorder import Recorder, load, now_ms
from odradek.testing.history.verdict import Verdict, check

BROKERS = 3
TIMEOUT_MS, CHECK_MS = 3_000, 200
SLACK_MS = 7_000
"""For elections, loading and a busy machine."""
LONGEST_DELAY_SECONDS = 0.02
PATIENCE_SECONDS = 90.0
SETTINGS = {
    "transaction.state.log.num.partitions": 5,
    "offsets.topic.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": CHECK_MS,
    "default.replication.factor": BROKERS,
    "min.insync.replicas": 2,
    "transaction.state.log.min.isr": 2,
    "replica.lag.time.max.ms": 2_000,
}
CLIENT = "client"
VICTIMS = ("coordinator", "leader", "group coordinator", CLIENT)


@dataclass(frozen=True)
class Round:
    """What is killed when, in a transaction of which version and with which end."""

    is_v2: bool
    step: str
    victim: str
    commits: bool


def every_round(random: Random) -> list[Round]:
    """Each victim at each step, of both versions and ends, in any order."""
    rounds = [
        Round(is_v2, step, victim, commits)
        for is_v2, steps in ((False, STEPS_OF_V1), (True, STEPS_OF_V2))
        for step in steps
        for victim in VICTIMS
        for commits in (True, False)
    ]
    random.shuffle(rounds)
    return rounds


def each_step_once(random: Random) -> list[Round]:
    """Each step of both versions; each victim as often as the others, by turns."""
    steps = [(False, step) for step in STEPS_OF_V1] + [(True, step) for step in STEPS_OF_V2]
    random.shuffle(steps)
    return [
        Round(is_v2, step, VICTIMS[number % len(VICTIMS)], random.random() < 2 / 3)
        for number, (is_v2, step) in enumerate(steps)
    ]


@dataclass
class KillRun:
    """A cluster of its own, in `directory`; `said` gets a line for each round."""

    seed: int
    rounds: Sequence[Round]
    directory: Path
    said: Callable[[str], object] = lambda line: None
    _failures: list[str] = field(default_factory=list)

    def run(self) -> tuple[Verdict, list[str]]:
        """The verdict, and what failed in clients and readers."""
        began = now_ms()
        history = self.directory / "history"
        history.mkdir(parents=True)
        store = {"odradek.coordination": f"sqlite:{self.directory / 'coordination.db'}"}
        cluster = Cluster(SETTINGS | store, process=True, brokers=BROKERS, data_dir=self.directory / "data")
        with cluster, Recorder(history, "faults") as recorder:
            with WireClient(cluster.address(0), PATIENCE_SECONDS) as client:
                topic = a_topic(TOPIC, PARTITIONS)
                topic.topics[0].replication_factor = BROKERS
                answer = client.ask(ApiKey.CREATE_TOPICS, 7, topic)
                assert answer.topics[0].error_code == 0, answer
            self._run_among_readers(cluster, recorder, history)
        verdict = check(load(history), seed=self.seed, duration_ms=now_ms() - began)
        return verdict, self._failures

    def _run_among_readers(self, cluster: Cluster, recorder: Recorder, history: Path) -> None:
        def work(name: str) -> Work:
            return Work("", name, cluster.bootstrap, TOPIC, PARTITIONS, GROUP if name == "monitor" else "")

        monitor = Monitor(work("monitor"), history, TIMEOUT_MS + CHECK_MS + SLACK_MS)
        workers: list[Worker] = [CommittedReader(work("reader"), history), monitor]
        for worker in workers:
            worker.start()
        try:
            self._run_rounds(cluster, recorder, history)
            wait_until_decided(cluster.bootstrap, TOPIC, PARTITIONS)
        finally:
            for worker in workers:
                worker.stop(PATIENCE_SECONDS)
        last = FinalCommittedReader(work("last"), history)
        last.start()
        last.stop(PATIENCE_SECONDS)
        named = [(worker.work.name, worker.failure) for worker in (*workers, last)]
        self._failures += [f"{name}: {failure}" for name, failure in named if failure]

    def _run_rounds(self, cluster: Cluster, recorder: Recorder, history: Path) -> None:
        random = Random(f"{self.seed} rounds")
        addresses = [cluster.address(broker_id) for broker_id in cluster.broker_ids]
        ids = {False: 0, True: 0}
        with ClientHost(self.directory / "clients.log") as host:
            for number, planned in enumerate(self.rounds, 1):
                name = f"{'v2' if planned.is_v2 else 'v1'}-{ids[planned.is_v2]}"
                job = Job(
                    number=number,
                    addresses=addresses,
                    transactional_id=name,
                    is_v2=planned.is_v2,
                    commits=planned.commits,
                    is_killed=planned.victim == CLIENT,
                    timeout_ms=TIMEOUT_MS,
                    directory=str(history),
                )
                began = time.monotonic()
                status = RunningRound(cluster, recorder, host, planned, job, random).run()
                seconds = time.monotonic() - began
                self.said(f"{number} {name} {planned.step}: {planned.victim} killed, {seconds:.1f} s")
                if status != (-signal.SIGKILL if job.is_killed else 0):
                    self._failures.append(f"client {number} ended with {status}")
                if planned.victim == CLIENT and random.random() < 1 / 2:
                    ids[planned.is_v2] += 1


class ClientHost:
    """The process that runs clients, one after the other; `log` gets their errors."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.transactions.client_host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def begin(self, job: Job) -> int:
        """The process id of the client."""
        print(job.encode(), file=_pipe(self._process.stdin), flush=True)
        word, pid = self.line().split()
        assert word == "pid", word
        return int(pid)

    def line(self) -> str:
        """The next line that the client or its host says."""
        line = _pipe(self._process.stdout).readline()
        assert line, "the host of the clients has ended"
        return line.strip()

    def __enter__(self) -> ClientHost:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


@dataclass
class RunningRound:
    """One client, and the one that is killed meanwhile."""

    cluster: Cluster
    recorder: Recorder
    host: ClientHost
    planned: Round
    job: Job
    random: Random

    def run(self) -> int:
        """The exit status of the client."""
        victim = self._broker()
        pid = self.host.begin(self.job)
        while True:
            line = self.host.line()
            if line.startswith("gone "):
                return int(line.removeprefix("gone "))
            if line == self.planned.step:
                time.sleep(self.random.uniform(0, LONGEST_DELAY_SECONDS))
                self._kill(pid, victim)
            assert line == DONE or line in STEPS_OF_V1, line

    def _broker(self) -> int:
        """The broker to be killed, if it is one."""
        job, victim = self.job, self.planned.victim
        client = ClientWithOffsets(job, job.transactional_id, GROUP, is_v2=job.is_v2)
        find = {
            "coordinator": client.coordinator,
            "leader": lambda: client.leader(TOPIC, self.random.randrange(PARTITIONS)),
            "group coordinator": client.group_coordinator,
            CLIENT: lambda: 0,
        }[victim]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (broker_id := find()) < 0:
            assert time.monotonic() < deadline, f"there is no {victim}"
            time.sleep(0.02)
        return broker_id

    def _kill(self, pid: int, broker_id: int) -> None:
        began_ms = now_ms()
        if self.planned.victim == CLIENT:
            os.kill(pid, signal.SIGKILL)
            self.recorder.record(Fault(CLIENT_KILLED, self.job.prefix, began_ms))
            return
        self.cluster.kill(broker_id)
        self.cluster.start(broker_id)
        kind = f"kill {self.planned.victim}"
        self.recorder.record(Fault(kind, f"{broker_id} at {self.planned.step}", began_ms, now_ms()))
