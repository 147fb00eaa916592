"""How long a partition takes no records when its leader dies, ours beside Apache Kafka in the same run.

The figure is the time between the last acknowledgement before and the first after, as a client with default
settings sees it, its own delays included: kill -9 of the leader, which is or is not the controller too; then
the longest gap while the leader shuts down in order. Brokers have their default settings.

    python bench/replication/failover.py [--kills 20] [--shutdowns 10] [--kafka-kills 5] [--partitions 1000]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clusters import EMBEDDED, KAFKA, ON_ZOOKEEPER, cluster
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as Partition
from paced_producer import CLIENTS, longest_gap

from faults.cluster.brokers import Brokers, wait_for
from progress import CONSOLE
from results import CACHE, PLOTS, RESULTS, BenchResult, circumstances, markdown_table, save

TOPIC, PARTITIONS = "measured", 6
STEADY_SECONDS = 1.0
AFTER_SECONDS = 1.0
GAP_SECONDS = 90.0
KINDS = ("leader", "leader and controller")


class Failovers:
    """One cluster, one client after the other."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        brokers.create_topic(TOPIC, PARTITIONS, 3, min_insync_replicas="2")

    def kill(self, kind: str, client: str) -> float:
        """Kill the leader of a partition; the gap in seconds. All replicas are in sync again afterwards."""
        return self._gap(kind, client, self._brokers.kill)

    def shut_down(self, client: str) -> float:
        """The longest gap while a leader stops in order."""
        return self._gap("leader", client, self._brokers.terminate)

    def _gap(self, kind: str, client: str, end: Callable[[int], None]) -> float:
        partition = self._partition_for(kind)
        leader = self._brokers.leader(TOPIC, partition)
        producer = CLIENTS[client](self._brokers.bootstrap, TOPIC, partition)
        try:
            wait_for(lambda: len(producer.acknowledged) > 50, "the client produces", 30)
            time.sleep(STEADY_SECONDS)
            before = time.monotonic()
            end(leader)
            over = time.monotonic()
            wait_for(
                lambda: producer.acknowledged[-1] > over + AFTER_SECONDS,
                "records are taken again",
                GAP_SECONDS,
            )
        finally:
            producer.close()
        self._brokers.start(leader)
        self._brokers.wait_in_sync([TOPIC])
        return longest_gap(producer.acknowledged, before)

    def _partition_for(self, kind: str) -> int:
        """A partition whose leader is, or is not, the controller."""
        wanted = kind == "leader and controller"
        for _ in range(20):
            controller = self._brokers.controller
            for partition in range(PARTITIONS):
                if (self._brokers.leader(TOPIC, partition) == controller) == wanted:
                    return partition
            self._elect_preferred()
            time.sleep(0.5)
        raise RuntimeError(f"no partition with: {kind}")

    def _elect_preferred(self) -> None:
        partitions = [Partition(TOPIC, number) for number in range(PARTITIONS)]
        try:
            self._brokers.admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)
        except KafkaException as error:
            CONSOLE.print(f"preferred election: {error}")


def measure(name: str, kills: int, shutdowns: int, extra_partitions: int, directory: Path) -> BenchResult:
    """All gaps of one kind of cluster, in seconds."""
    rows: BenchResult = {}
    with cluster(name, directory) as brokers:
        if extra_partitions:
            brokers.create_topic("others", extra_partitions, 3)
        failovers = Failovers(brokers)
        for client in CLIENTS:
            for kind in KINDS:
                gaps = []
                for number in range(kills):
                    gaps.append(failovers.kill(kind, client))
                    CONSOLE.print(f"{name}, {kind}, {client}, kill {number + 1}: {gaps[-1]:.3f} s")
                rows[f"kill {kind}, {client}"] = gaps
            gaps = [failovers.shut_down(client) for _ in range(shutdowns)]
            CONSOLE.print(f"{name}, shutdown, {client}: {[round(gap, 3) for gap in gaps]}")
            rows[f"shutdown, {client}"] = gaps
    return rows


def markdown(outcome: BenchResult) -> str:
    """A row for each kind of cluster and end of a leader."""
    rows = [
        (name, what, str(len(gaps)), f"{statistics.median(gaps):.3f}", f"{min(gaps):.3f}", f"{max(gaps):.3f}")
        for name, kinds in outcome.items()
        for what, gaps in kinds.items()
        if gaps
    ]
    return markdown_table(("cluster", "what", "times", "median s", "least", "most"), rows)


@click.command()
@click.option("--kills", default=20, show_default=True)
@click.option("--shutdowns", default=10, show_default=True)
@click.option("--kafka-kills", default=5, show_default=True)
@click.option("--zookeeper-kills", default=5, show_default=True)
@click.option("--partitions", default=1000, show_default=True, help="In the run with many partitions.")
@click.option("--only", multiple=True, help="Only these clusters.")
@click.option("--quick", is_flag=True, help="A sanity check: no real figures.")
def main(
    kills: int,
    shutdowns: int,
    kafka_kills: int,
    zookeeper_kills: int,
    partitions: int,
    only: tuple[str, ...],
    quick: bool,
) -> None:
    """Measure, print, keep and draw."""
    many = f"{EMBEDDED}, {partitions} partitions"
    runs = {
        EMBEDDED: (EMBEDDED, kills, shutdowns, 0),
        many: (EMBEDDED, max(1, kills // 4), max(1, shutdowns // 4), partitions),
        ON_ZOOKEEPER: (ON_ZOOKEEPER, zookeeper_kills, shutdowns, 0),
        KAFKA: (KAFKA, kafka_kills, shutdowns, 0),
    }
    outcome: BenchResult = {}
    for name, (kind, kill_count, shutdown_count, extra) in runs.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="odradek-failover-") as directory:
            outcome[name] = measure(kind, kill_count, shutdown_count, extra, Path(directory) / "cluster")
    print(markdown(outcome))
    results, plots = (CACHE, CACHE) if quick else (RESULTS, PLOTS)
    save(results / "failover.json", outcome | {"circumstances": circumstances(("confluent-kafka",))})
    from charts import grouped_bars

    whats = list(next(iter(outcome.values())))
    series = {
        name: [statistics.median(rows[what]) if rows.get(what) else 0.0 for what in whats]
        for name, rows in outcome.items()
    }
    title = "median gap without acknowledgements, s"
    grouped_bars(plots / "replication-failover.png", title, whats, series, label="s", is_logarithmic=True)


if __name__ == "__main__":
    main()
