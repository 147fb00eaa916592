"""Every metric with its name, labels and help text."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

PREFIX = "odradek_"


class MetricType(StrEnum):
    """The type of a metric: a counter only increases."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Metric(NamedTuple):
    """One metric with its help text; Prometheus adds `_total` to the name of a counter."""

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    help: str


def _counter(name: str, labels: tuple[str, ...], help_text: str) -> Metric:
    return Metric(PREFIX + name, MetricType.COUNTER, labels, help_text)


def _gauge(name: str, labels: tuple[str, ...], help_text: str) -> Metric:
    return Metric(PREFIX + name, MetricType.GAUGE, labels, help_text)


_REQUEST = ("api", "listener")
REQUESTS = _counter("requests", _REQUEST, "Requests that were read.")
REQUEST_ERRORS = _counter("request_errors", _REQUEST, "Requests that failed as a whole.")
REQUEST_BYTES = _counter("request_bytes", _REQUEST, "Bytes of requests.")
RESPONSE_BYTES = _counter("response_bytes", _REQUEST, "Bytes of answers.")
REQUEST_SECONDS = _counter("request_seconds", _REQUEST, "Time from request to answer, waits included.")
REQUESTS_UNDER_WAY = _gauge("requests_under_way", (), "Requests that threads or the store work on.")

CONNECTIONS = _gauge("connections", ("listener",), "Connections open now.")
CONNECTIONS_ACCEPTED = _counter("connections_accepted", ("listener",), "Connections that were let in.")
CONNECTIONS_REFUSED = _counter("connections_refused", ("listener",), "Connections beyond a limit.")
PURGATORY = _gauge("purgatory_size", ("purgatory",), "Requests that wait for replicas or data.")
FETCH_SESSIONS = _gauge("fetch_sessions", (), "Incremental fetch sessions that are kept.")

BYTES_IN = _counter("topic_bytes_in", ("topic",), "Bytes of batches that producers appended.")
MESSAGES_IN = _counter("topic_messages_in", ("topic",), "Records that producers appended.")
BYTES_OUT = _counter("topic_bytes_out", ("topic",), "Bytes of batches that were fetched.")

_PARTITION = ("topic", "partition")
LOG_SIZE = _gauge("log_size_bytes", _PARTITION, "Bytes of all segments.")
LOG_START_OFFSET = _gauge("log_start_offset", _PARTITION, "The first offset that may be read.")
LOG_END_OFFSET = _gauge("log_end_offset", _PARTITION, "The offset that the next record gets.")
HIGH_WATERMARK = _gauge("high_watermark", _PARTITION, "Everything below is on all replicas in sync.")

TRANSACTIONS_OPEN = _gauge("open_transactions", (), "Transactions coordinated here that are not decided yet.")
OLDEST_TRANSACTION = _gauge("oldest_transaction_seconds", (), "How long the oldest of them has been open.")
TRANSACTIONS_ENDED = _counter("transactions_ended", ("outcome",), "Transactions that were decided here.")
MARKERS_WAITING = _gauge("transaction_markers_waiting", (), "Markers that are to be written to partitions.")

PARTITIONS = _gauge("partitions", (), "Partitions with a replica here.")
LEADERS = _gauge("leaders", (), "Partitions that this broker leads.")
UNDER_REPLICATED = _gauge("under_replicated_partitions", (), "Led here, with replicas that are not in sync.")
UNDER_MIN_ISR = _gauge(
    "under_min_isr_partitions", (), "Led here, with fewer replicas in sync than min.insync.replicas."
)
AT_MIN_ISR = _gauge("at_min_isr_partitions", (), "Led here, with exactly min.insync.replicas in sync.")
REPLICA_LAG = _gauge(
    "replica_lag", (*_PARTITION, "follower"), "Records that a follower of this leader does not have yet."
)
MAX_FOLLOWER_LAG = _gauge(
    "max_follower_lag", (), "The most records that a follower here is behind its leader."
)
ISR_SHRINKS = _counter("isr_shrinks", (), "Followers of this leader that were removed from an ISR.")
ISR_EXPANDS = _counter("isr_expands", (), "Followers of this leader that joined an ISR again.")
FAILED_ISR_UPDATES = _counter("failed_isr_updates", (), "Changes of an ISR that the controller refused.")
REPLICATION_BYTES_IN = _counter("replication_bytes_in", (), "Bytes of batches that followers here fetched.")
FAILED_FETCHES = _counter("failed_replica_fetches", (), "Fetches from a leader that failed as a whole.")
CORRUPT_BATCHES = _counter(
    "corrupt_replica_batches", (), "Responses of leaders that followers here refused for a corrupt batch."
)
TRUNCATIONS = _counter("replica_truncations", (), "Logs of followers here that were cut to the leader's.")
ACTIVE_CONTROLLER = _gauge("active_controller", (), "1 if this broker is the controller, else 0.")
OFFLINE_PARTITIONS = _gauge("offline_partitions", (), "Without a leader; 0 on all but the controller.")
LEADER_ELECTIONS = _counter("leader_elections", (), "Leaders that this broker elected as the controller.")
UNCLEAN_ELECTIONS = _counter(
    "unclean_leader_elections", (), "Of these, leaders that were not in sync: records may be lost."
)
OFFLINE_DIRECTORIES = _gauge("offline_log_directories", (), "Log directories that have failed.")
OPEN_FILES = _gauge("open_log_files", (), "Files of logs that are held open.")
