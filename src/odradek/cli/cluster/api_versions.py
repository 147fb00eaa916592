"""`odradek cluster api-versions`: the API versions of each broker, like kafka-broker-api-versions.sh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.cluster import BrokerDescription
    from odradek.client.network.api_versions import BrokerVersions


@click.command("api-versions")
@bootstrap_option
@output_option
def command(bootstrap: str, output: str | None) -> None:
    """Show the versions of every API that the brokers support, and the one that odradek would use."""
    with admin_client(bootstrap) as admin:
        brokers = admin.describe_cluster().brokers
        found = [(broker, admin.api_versions(broker.broker_id)) for broker in brokers]
    rows = [{"broker": broker.broker_id, **row} for broker, versions in found for row in _rows(versions)]
    lines = [line for broker, versions in found for line in _lines(broker, versions)]
    print_rows(output, rows, lines, title="versions")


def _rows(versions: BrokerVersions) -> Iterator[dict[str, Any]]:
    from odradek.client.errors import UnsupportedByBroker  # noqa: PLC0415
    from odradek.protocol.api import request_spec  # noqa: PLC0415
    from odradek.protocol.api_key import ApiKey  # noqa: PLC0415

    for key, (low, high) in sorted(versions.versions.items()):
        if key not in set(ApiKey):
            yield {"api": f"UNKNOWN({key})", "key": key, "min": low, "max": high, "usable": None}
            continue
        try:
            usable = versions.best(ApiKey(key))
        except UnsupportedByBroker:
            usable = None
        name = request_spec(ApiKey(key)).name.removesuffix("Request")
        yield {"api": name, "key": key, "min": low, "max": high, "usable": usable}


def _lines(broker: BrokerDescription, versions: BrokerVersions) -> Iterator[str]:
    yield (
        f"{broker.host}:{broker.port} (id: {broker.broker_id} rack: {broker.rack or 'null'} isFenced: "
        f"{str(broker.is_fenced).lower()}) -> ("
    )
    parts = []
    for row in _rows(versions):
        span = str(row["min"]) if row["min"] == row["max"] else f"{row['min']} to {row['max']}"
        usable = "UNSUPPORTED" if row["usable"] is None else row["usable"]
        name = row["api"] if row["api"].startswith("UNKNOWN") else f"{row['api']}({row['key']})"
        parts.append(f"\t{name}: {span} [usable: {usable}]")
    yield ",\n".join(parts)
    yield ")"
