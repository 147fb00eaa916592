"""CreateAcls, API key 30: add ACLs.

Versions 1-3, as Kafka 4.  1: prefixed patterns.  2: flexible.  3: users.
"""

from __future__ import annotations

from odradek.broker.requests.acl_calls import change, require_authorizer
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acl_validation import check_binding
from odradek.cluster.acls import ClusterAcls
from odradek.common.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateAclsRequest, CreateAclsResponse

Row = CreateAclsResponse.Results


@handles(ApiKey.CREATE_ACLS, versions=(1, 3))
async def create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """Each ACL has its own result; those of one pattern are written together. Existing ones are no error."""
    _, acls = require_authorizer(context.services)
    rows = []
    by_pattern: dict[ResourcePattern, dict[AccessControlEntry, list[Row]]] = {}
    async for creation in CooperativeYield().over(request.creations):
        binding, row = _binding(creation), Row(error_message=None)
        rows.append(row)
        try:
            check_binding(binding)
        except KafkaError as error:
            _refuse(row, error)
        else:
            by_pattern.setdefault(binding.pattern, {}).setdefault(binding.entry, []).append(row)
    for pattern, added in by_pattern.items():
        try:
            await _add(acls, pattern, tuple(added))
        except KafkaError as error:
            for row in (row for some in added.values() for row in some):
                _refuse(row, error)
    return CreateAclsResponse(results=rows)


async def _add(acls: ClusterAcls, pattern: ResourcePattern, entries: tuple[AccessControlEntry, ...]) -> None:
    await change(acls, pattern, lambda before: (*before, *entries))


def _binding(creation: CreateAclsRequest.Creations) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType(creation.resource_type),
            creation.resource_name,
            PatternType(creation.resource_pattern_type),
        ),
        AccessControlEntry(
            creation.principal,
            creation.host,
            AclOperation(creation.operation),
            AclPermissionType(creation.permission_type),
        ),
    )


def _refuse(row: Row, error: KafkaError) -> None:
    row.error_code, row.error_message = error.error_code, str(error)
