"""The API versions and features that a broker reports, and the best version that both sides support."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.client.errors import UnsupportedByBroker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import stable_versions
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.schema import Versions

NEWEST = ApiVersionsRequest.SPEC.versions.high
_HEADER_BYTES = 4  # the response to ApiVersions always has header version 0


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """The APIs of one broker; `address` is for error messages."""

    address: str
    versions: dict[int, Versions] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    """Finalized features with their level: `transaction.version` 2 means transactions v2."""
    _found: dict[tuple[int, int | None], int] = field(default_factory=dict, repr=False, compare=False)

    def best(self, api_key: ApiKey, max_version: int | None = None) -> int:
        """The highest version that both sides support, at most `max_version`."""
        found = self._found.get((api_key, max_version))
        if found is None:
            found = self._found[api_key, max_version] = self._find(api_key, max_version)
        return found

    def _find(self, api_key: ApiKey, max_version: int | None) -> int:
        ours = stable_versions(api_key)
        high = ours.high if max_version is None else min(ours.high, max_version)
        theirs = self.versions.get(api_key)
        if theirs is not None:
            both = Versions(max(ours.low, theirs.low), min(high, theirs.high))
            if both:
                return both.high
        offered = f"versions {theirs.low}-{theirs.high}" if theirs else "no version"
        raise UnsupportedByBroker(self.address, api_key.name, f"{ours.low}-{high}", offered)

    def serves(self, api_key: ApiKey, at_least: int = 0) -> bool:
        """Whether both sides support a version from `at_least` on."""
        theirs = self.versions.get(api_key)
        return theirs is not None and min(theirs.high, stable_versions(api_key).high) >= at_least


def read_response(address: str, version: int, frame: memoryview) -> BrokerVersions | int:
    """What the broker reported, or the version in which to repeat the request.

    A broker that does not support the version of the request responds in version 0.
    """
    error_code = int.from_bytes(frame[_HEADER_BYTES : _HEADER_BYTES + 2], "big", signed=True)
    refused = error_code == ErrorCode.UNSUPPORTED_VERSION
    response, _ = ApiVersionsResponse.decode(frame, 0 if refused else version, _HEADER_BYTES)
    if refused and version > 0:
        own = next((row for row in response.api_keys if row.api_key == ApiKey.API_VERSIONS), None)
        return min(own.max_version, version - 1) if own is not None else 0
    versions = {row.api_key: Versions(row.min_version, row.max_version) for row in response.api_keys}
    features = {row.name: row.max_version_level for row in response.finalized_features}
    return BrokerVersions(address, versions, features)
