"""The settings of the group coordinator."""

from __future__ import annotations

from dataclasses import dataclass

INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Limits and timeouts; the defaults are Kafka's."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT_MAX
    initial_rebalance_delay_ms: int = 3_000
    # A new member has no id to send heartbeats with; this is how long its first JoinGroup may wait.
    new_member_join_timeout_ms: int = 300_000
    is_consumer_protocol_enabled: bool = True
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = INT_MAX
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_assignment_interval_ms: int = 1_000
    # Which groups may change their protocol while they have members.
    is_upgrade_enabled: bool = True
    is_downgrade_enabled: bool = True
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
