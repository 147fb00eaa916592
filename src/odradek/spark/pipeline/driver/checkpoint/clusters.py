"""Which clusters a pipeline reads: offsets in a checkpoint mean nothing for another one."""

from __future__ import annotations

from odradek.client.admin.admin import Admin
from odradek.spark.pipeline.definition.model import PipelineModel, TopicSource


def cluster_ids(pipeline: PipelineModel) -> dict[str, str | None]:
    """The cluster id by the bootstrap servers of each source of topics; None where brokers have none."""
    sources = [source for source in pipeline.sources if isinstance(source, TopicSource)]
    return {servers: _cluster_id(servers) for servers in {pipeline.bootstrap_of(one) for one in sources}}


def _cluster_id(servers: str) -> str | None:
    admin = Admin(bootstrap_servers=servers, client_id="odradek-pipeline", default_api_timeout_ms=20_000)
    try:
        return admin.describe_cluster().cluster_id
    finally:
        admin.close()
