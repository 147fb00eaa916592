from __future__ import annotations

import pytest

from odradek.common.config import Kind, settings_of
from odradek.common.errors import ConfigError
from odradek.log.config import LogConfig, from_properties

KAFKA_4_3_1 = """
cleanup.policy list [delete]
compression.gzip.level int -1
compression.lz4.level int 9
compression.type string producer
compression.zstd.level int 3
delete.retention.ms long 86400000
file.delete.delay.ms long 60000
flush.messages long 9223372036854775807
flush.ms long 9223372036854775807
follower.replication.throttled.replicas list []
index.interval.bytes int 4096
internal.segment.bytes int null
leader.replication.throttled.replicas list []
max.compaction.lag.ms long 9223372036854775807
max.message.bytes int 1048588
message.timestamp.after.max.ms long 3600000
message.timestamp.before.max.ms long 9223372036854775807
message.timestamp.type string CreateTime
min.cleanable.dirty.ratio double 0.5
min.compaction.lag.ms long 0
min.insync.replicas int 1
preallocate boolean false
retention.bytes long -1
retention.ms long 604800000
segment.bytes int 1073741824
segment.index.bytes int 10485760
segment.jitter.ms long 0
segment.ms long 604800000
unclean.leader.election.enable boolean false
"""


def test_names_types_and_defaults_are_kafkas() -> None:
    ours = {}
    for key, setting in settings_of(LogConfig).items():
        default = setting.default
        if isinstance(default, tuple):
            printed = f"[{', '.join(default)}]"
        else:
            printed = str(setting.print(default) or "null")
        ours[key] = (setting.kind.name.lower(), printed)
    rows = (line.split(maxsplit=2) for line in KAFKA_4_3_1.strip().splitlines())
    assert ours == {key: (kind, default) for key, kind, default in rows}


def test_every_setting_is_explained() -> None:
    assert all(setting.doc.endswith(".") for setting in settings_of(LogConfig).values())


def test_values_come_from_text_and_go_back_to_it() -> None:
    properties = {
        "cleanup.policy": "compact, delete",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.1",
        "preallocate": "TRUE",
    }
    config = from_properties(LogConfig, properties)
    assert config.cleanup_policy == ("compact", "delete")
    assert config.is_compacted
    assert config.deletes
    assert config.preallocate


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("segment.bytes", "1048575"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "many"),
        ("cleanup.policy", "shred"),
        ("compression.type", "rar"),
        ("compression.gzip.level", "0"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("preallocate", "yes"),
        ("retention.ms", "-2"),
        ("min.insync.replicas", "0"),
    ],
)
def test_a_bad_value_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        from_properties(LogConfig, {key: value})


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"remote\.storage\.enable"):
        from_properties(LogConfig, {"remote.storage.enable": "true"})


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms"):
        from_properties(LogConfig, {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_kinds_are_numbered_as_describe_configs_does() -> None:
    assert [kind.value for kind in (Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.SHORT, Kind.LONG)] == [
        1,
        2,
        3,
        4,
        5,
    ]
