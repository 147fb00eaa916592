"""Makes the Java vectors anew, the same lines each time: python tests/protocol/oracle/make_vectors.py"""

from __future__ import annotations

import gzip

import java


def main() -> None:
    java.DATA_DIR.mkdir(parents=True, exist_ok=True)
    for kafka_version, lines in java.make_lines().items():
        path = java.vectors_path(kafka_version)
        path.write_bytes(gzip.compress(lines, 9, mtime=0))
        print(f"{path.relative_to(java.ROOT)}: {len(lines.splitlines())} lines, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
