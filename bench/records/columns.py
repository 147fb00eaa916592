"""Batches to and from Arrow, and the codecs: the rates that a scan or a pipeline can hope for.

.venv/bin/python bench/records/columns.py [ROUNDS]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pyarrow as pa

from odradek.records.arrow import build_batches, read_table
from odradek.records.batch import HEADER_SIZE
from odradek.records.compression import Codec, compress, decompress

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Report, measure

COUNT = 50_000
LIMIT = 1 << 28


def a_table() -> pa.Table:
    """Keys of 8 bytes, values of 100 that a codec can shrink to about a third."""
    source = random.Random(5)
    words = [source.randbytes(5).hex().encode() for _ in range(200)]
    return pa.table(
        {
            "key": pa.array([b"%08d" % i for i in range(COUNT)]),
            "value": pa.array([b" ".join(source.choices(words, k=10))[:100] for _ in range(COUNT)]),
            "timestamp": pa.array(range(COUNT), pa.timestamp("ms", "UTC")),
        }
    )


def main(rounds: int) -> None:
    table = a_table()
    report = Report(f"Records and Arrow: {COUNT} records of 108 bytes")
    for size in (16 * 1024, 1024 * 1024):
        log = b"".join(batch for _, batch in build_batches(table, max_batch_bytes=size))
        contest = {"read_table": lambda log=log: read_table(log, max_bytes=LIMIT)}
        report.add(f"to Arrow, {size // 1024} KiB batches", measure(contest, rounds), COUNT, "records")
        contest = {"build_batches": lambda size=size: list(build_batches(table, max_batch_bytes=size))}
        report.add(f"from Arrow, {size // 1024} KiB batches", measure(contest, rounds), COUNT, "records")
    report.show()

    codecs = Report("Codecs on a batch of 64 KiB")
    (_, batch), *_ = build_batches(table, max_batch_bytes=64 * 1024)
    plain = bytes(batch[HEADER_SIZE:])
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        packed = bytes(compress(codec, plain))
        contest = {
            "compress": lambda codec=codec: compress(codec, plain),
            "decompress": lambda codec=codec, packed=packed: decompress(codec, packed, LIMIT),
        }
        what = f"{codec.name.lower()}, to {len(packed) / len(plain):.0%}"
        codecs.add(what, measure(contest, rounds), len(plain), "bytes")
    codecs.show()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
