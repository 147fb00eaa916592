"""Permissions: create, describe and delete ACLs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odradek.client.admin.base import AdminBase, ResultOrError, outcome_of
from odradek.client.broker_errors import broker_error, check
from odradek.common.acls import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)


class AclAdmin(AdminBase):
    """The calls about ACLs; a broker without an authorizer refuses them all (SecurityDisabled)."""

    async def create_acls(self, bindings: Iterable[AclBinding]) -> dict[AclBinding, ResultOrError[None]]:
        """Add ACLs; one that exists already is no error."""
        wanted = list(dict.fromkeys(bindings))
        request = CreateAclsRequest(creations=[_creation(one) for one in wanted])
        response = await self.brokers.retry(
            "creating ACLs", lambda: self.brokers.send_to_any(request, CreateAclsResponse)
        )
        return {
            binding: outcome_of(None, row.error_code, row.error_message)
            for binding, row in zip(wanted, response.results, strict=True)
        }

    async def describe_acls(self, wanted: AclBindingFilter | None = None) -> list[AclBinding]:
        """The ACLs that the filter finds; all of them without one."""
        request = DescribeAclsRequest(**_fields_of(wanted or AclBindingFilter()))
        response = await self.brokers.retry(
            "describing ACLs", lambda: self.brokers.send_to_any(request, DescribeAclsResponse)
        )
        check(response.error_code, response.error_message)
        return [AclBinding(_pattern(row), _entry(acl)) for row in response.resources for acl in row.acls]

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter]
    ) -> dict[AclBindingFilter, ResultOrError[list[AclBinding]]]:
        """Delete what each filter finds; the ACLs that are gone now."""
        wanted = list(dict.fromkeys(filters))
        request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filters(**_fields_of(one)) for one in wanted])
        response = await self.brokers.retry(
            "deleting ACLs", lambda: self.brokers.send_to_any(request, DeleteAclsResponse)
        )
        return {one: _deleted(row) for one, row in zip(wanted, response.filter_results, strict=True)}


def _deleted(row: DeleteAclsResponse.FilterResults) -> ResultOrError[list[AclBinding]]:
    if row.error_code:
        return broker_error(row.error_code, row.error_message)
    failed = [acl for acl in row.matching_acls if acl.error_code]
    if failed:
        return broker_error(failed[0].error_code, failed[0].error_message)
    return [AclBinding(_pattern(acl), _entry(acl)) for acl in row.matching_acls]


def _creation(binding: AclBinding) -> CreateAclsRequest.Creations:
    pattern, entry = binding
    return CreateAclsRequest.Creations(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        resource_pattern_type=pattern.pattern_type,
        **entry._asdict(),
    )


def _fields_of(wanted: AclBindingFilter) -> dict[str, Any]:
    """Both requests name the parts of a filter alike."""
    pattern, entry = wanted
    return {
        "resource_type_filter": pattern.resource_type,
        "resource_name_filter": pattern.name,
        "pattern_type_filter": pattern.pattern_type,
        "principal_filter": entry.principal,
        "host_filter": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }


def _pattern(
    row: DescribeAclsResponse.Resources | DeleteAclsResponse.FilterResults.MatchingAcls,
) -> ResourcePattern:
    return ResourcePattern(ResourceType(row.resource_type), row.resource_name, PatternType(row.pattern_type))


def _entry(
    row: DescribeAclsResponse.Resources.Acls | DeleteAclsResponse.FilterResults.MatchingAcls,
) -> AccessControlEntry:
    return AccessControlEntry(
        row.principal, row.host, AclOperation(row.operation), AclPermissionType(row.permission_type)
    )
