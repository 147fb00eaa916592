"""kcat with the librdkafka of the system: Debian 12 has 2.0.2, which relies on our version ranges."""

from __future__ import annotations

import subprocess

import pytest

CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ATTRIBUTES_OFFSET, CODEC_MASK = 22, 0b111  # the lower byte of a batch's attributes


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_keys_values_headers_and_nulls_come_back(bootstrap, topic):
    kcat(bootstrap, "-P", "-t", topic, "-K:", "-Z", "-H", "h=1", stdin="k1:v1\nk2:v2\nk3:\n")
    reported = kcat(
        bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-Z", "-f", "%o %k=%s %h\n"
    )
    assert reported.splitlines() == ["0 k1=v1 h=1", "1 k2=v2 h=1", "2 k3=NULL h=1"]


@pytest.mark.parametrize("codec", CODEC_IDS)
def test_batches_are_kept_as_it_compressed_them(cluster, bootstrap, topic, codec):
    value = "compressible " * 100
    kcat(bootstrap, "-P", "-t", topic, "-z", codec, stdin=value)
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q").strip() == value.strip()
    stored = (cluster.data_dir / f"{topic}-0" / "00000000000000000000.log").read_bytes()
    assert stored[ATTRIBUTES_OFFSET] & CODEC_MASK == CODEC_IDS[codec]


def test_metadata_and_offsets_are_reported(bootstrap, topic):
    kcat(bootstrap, "-P", "-t", topic, stdin="one\ntwo\n")
    assert f'topic "{topic}" with 1 partitions:\n    partition 0, leader 0, replicas: 0, isrs: 0' in kcat(
        bootstrap, "-L", "-t", topic
    )
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 2"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:1").strip() == f"{topic} [0] offset 0"
