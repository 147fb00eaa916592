"""DescribeAcls, API key 29: the ACLs that a filter finds.

Versions 1-3, as Kafka 4.  1: prefixed patterns.  2: flexible.  3: users.
"""

from __future__ import annotations

from odradek.broker.requests.acl_calls import binding_filter, require_authorizer
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acl_validation import check_filter
from odradek.common.acls import AccessControlEntry, ResourcePattern
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeAclsRequest, DescribeAclsResponse

Row = DescribeAclsResponse.Resources


@handles(ApiKey.DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """The ACLs that the authorizer of this broker applies."""
    authorizer, _ = require_authorizer(context.services)
    wanted = binding_filter(request)
    check_filter(wanted)
    by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for pattern, entry in authorizer.acls(wanted):
        by_pattern.setdefault(pattern, []).append(entry)
    rows = [_row(pattern, entries) for pattern, entries in sorted(by_pattern.items())]
    return DescribeAclsResponse(resources=rows, error_message=None)


def _row(pattern: ResourcePattern, entries: list[AccessControlEntry]) -> Row:
    return Row(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[Row.Acls(**entry._asdict()) for entry in entries],
    )
