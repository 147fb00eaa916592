"""Asks the controller to move leaders to other brokers before this broker stops."""

from __future__ import annotations

import asyncio
import logging

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cluster.controller_channel import ControllerChannel
from odradek.cluster.node import ClusterNode
from odradek.common.error_codes import ErrorCode
from odradek.coordination.store import SessionState
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse

logger = logging.getLogger(__name__)


async def shut_down_controlled(node: ClusterNode, channel: ControllerChannel, config: BrokerConfig) -> None:
    """Return when this broker leads nothing that another could lead, or after the configured attempts.

    Without contact to the store, or without other brokers, no leader can be moved, and nothing is asked.
    """
    is_alone = node.live_brokers().keys() <= {node.broker_id}
    for attempt in range(config.controlled_shutdown_max_retries + 1):
        if is_alone or node.store.state is not SessionState.CONNECTED:
            return
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        problem = await _ask(node, channel, config.controller_socket_timeout_ms / 1000)
        if problem is None:
            return
        logger.warning("controlled shutdown, attempt %d: %s", attempt + 1, problem)
    logger.warning("stopping although not every leader was moved: those partitions have no leader then")


async def _ask(node: ClusterNode, channel: ControllerChannel, timeout_s: float) -> str | None:
    """Ask once; returns what is in the way, or None."""
    request = ControlledShutdownRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    try:
        response = await channel.send(request, timeout_s=timeout_s)
    except RequestFailed as error:
        return str(error)
    assert isinstance(response, ControlledShutdownResponse)
    if response.error_code != ErrorCode.NONE:
        return ErrorCode(response.error_code).name
    if response.remaining_partitions:
        rows = [f"{row.topic_name}-{row.partition_index}" for row in response.remaining_partitions]
        return f"no other replica is in sync with {', '.join(rows[:10])}{' ...' if len(rows) > 10 else ''}"
    return None
