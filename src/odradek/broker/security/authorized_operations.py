"""What a client may do with a resource, as a bit field, for clients that ask.

Bit n stands for operation n of Kafka's ACLs, see `common/acls.py`.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.common.acls import OPERATIONS


def authorized_operations(context: RequestContext, resource: Resource) -> int:
    """The operations on the resource that the client is allowed; all there are without an authorizer."""
    allowed = (one for one in OPERATIONS[resource.type] if context.is_allowed(one, resource))
    return sum(1 << operation for operation in allowed)


def authorized_on_cluster(context: RequestContext) -> int:
    """The same for the cluster; none for whoever may not describe it."""
    if not context.is_allowed(Operation.DESCRIBE, CLUSTER):
        return 0
    return authorized_operations(context, CLUSTER)
