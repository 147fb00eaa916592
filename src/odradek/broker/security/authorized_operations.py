"""The operations that a client may do with a resource, as a bit field.

Bit n is operation n of Kafka's ACLs, see `common/acls.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.common.acls import OPERATIONS

IsAllowed = Callable[[Operation, Resource], bool]


def authorized_operations(is_allowed: IsAllowed, resource: Resource) -> int:
    """The operations on the resource that the client is allowed; all there are without an authorizer."""
    allowed = (one for one in OPERATIONS[resource.type] if is_allowed(one, resource))
    return sum(1 << operation for operation in allowed)


def authorized_on_cluster(is_allowed: IsAllowed) -> int:
    """The same for the cluster; none for a client that may not describe it."""
    if not is_allowed(Operation.DESCRIBE, CLUSTER):
        return 0
    return authorized_operations(is_allowed, CLUSTER)
