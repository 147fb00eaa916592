"""DeleteAcls, API key 31: delete the ACLs that filters find.

Versions 1-3, as Kafka 4.  1: prefixed patterns.  2: flexible.  3: users.
"""

from __future__ import annotations

from odradek.broker.requests.acl_calls import binding_filter, change, require_authorizer
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acl_validation import check_filter
from odradek.broker.security.acls import Authorizer
from odradek.cluster.acls import ClusterAcls
from odradek.common.acls import AccessControlEntry, AclBinding, AclBindingFilter, ResourcePattern
from odradek.common.errors import KafkaError
from odradek.coordination.payloads import Entries
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteAclsRequest, DeleteAclsResponse

FilterRow = DeleteAclsResponse.FilterResults
Row = FilterRow.MatchingAcls


@handles(ApiKey.DELETE_ACLS, versions=(1, 3))
async def delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Each filter returns the ACLs it deleted; an ACL that two filters match is in the first."""
    authorizer, acls = require_authorizer(context.services)
    rows = []
    async for asked in CooperativeYield().over(request.filters):
        wanted, row = binding_filter(asked), FilterRow(error_message=None)
        rows.append(row)
        try:
            check_filter(wanted)
        except KafkaError as error:
            row.error_code, row.error_message = error.error_code, str(error)
        else:
            row.matching_acls = await _delete(authorizer, acls, wanted)
    return DeleteAclsResponse(filter_results=rows)


async def _delete(authorizer: Authorizer, acls: ClusterAcls, wanted: AclBindingFilter) -> list[Row]:
    found: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for pattern, entry in authorizer.acls(wanted):
        found.setdefault(pattern, []).append(entry)
    rows: list[Row] = []
    for pattern, entries in sorted(found.items()):
        rows += await _delete_from(acls, pattern, entries, wanted)
    return rows


async def _delete_from(
    acls: ClusterAcls, pattern: ResourcePattern, known: list[AccessControlEntry], wanted: AclBindingFilter
) -> list[Row]:
    """Delete from one pattern, including ACLs in the store that this broker has not loaded yet."""
    deleted: list[AccessControlEntry] = []

    def remove(before: Entries) -> Entries:
        deleted[:] = [entry for entry in before if wanted.entry.matches(entry)]
        return tuple(entry for entry in before if not wanted.entry.matches(entry))

    try:
        await change(acls, pattern, remove)
    except KafkaError as error:
        return [_row(AclBinding(pattern, entry), error) for entry in known]
    return [_row(AclBinding(pattern, entry)) for entry in deleted]


def _row(binding: AclBinding, error: KafkaError | None = None) -> Row:
    pattern, entry = binding
    return Row(
        error_code=0 if error is None else error.error_code,
        error_message=None if error is None else str(error),
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        **entry._asdict(),
    )
