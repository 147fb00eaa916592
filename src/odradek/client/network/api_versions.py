"""What a broker can be asked: the versions and features it reports, and the best version both sides know."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.client.errors import UnsupportedByBroker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import stable_versions
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.schema import Versions

NEWEST = ApiVersionsRequest.SPEC.versions.high
_HEADER_BYTES = 4  # the answer to ApiVersions has header version 0, whatever it answers


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """What one broker serves. `address` is for people who must know what it does not serve."""

    address: str
    versions: dict[int, Versions] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    """Finalized features with their level: `transaction.version` 2 means transactions v2."""
    _found: dict[tuple[int, int | None], int] = field(default_factory=dict, repr=False, compare=False)

    def best(self, api_key: ApiKey, max_version: int | None = None) -> int:
        """The highest version that the broker serves and we know, at most `max_version`."""
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
        """Whether there is a version from `at_least` on that both sides know."""
        theirs = self.versions.get(api_key)
        return theirs is not None and min(theirs.high, stable_versions(api_key).high) >= at_least


def read_answer(address: str, version: int, frame: memoryview) -> BrokerVersions | int:
    """What the broker reported, or the version in which to ask again.

    A broker that does not know the version of our question answers in version 0.
    """
    error_code = int.from_bytes(frame[_HEADER_BYTES : _HEADER_BYTES + 2], "big", signed=True)
    refused = error_code == ErrorCode.UNSUPPORTED_VERSION
    answer, _ = ApiVersionsResponse.decode(frame, 0 if refused else version, _HEADER_BYTES)
    if refused and version > 0:
        own = next((row for row in answer.api_keys if row.api_key == ApiKey.API_VERSIONS), None)
        return min(own.max_version, version - 1) if own is not None else 0
    versions = {row.api_key: Versions(row.min_version, row.max_version) for row in answer.api_keys}
    features = {row.name: row.max_version_level for row in answer.finalized_features}
    return BrokerVersions(address, versions, features)
