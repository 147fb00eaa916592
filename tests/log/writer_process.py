"""A process that writes to a log until it is killed, and prints what it has written.

    python writer_process.py DIRECTORY EPOCH

One line after each append, `appended <log end>`, and after each flush, `flushed <recovery point>`. All of
it must survive the process: what was only written is in the page cache.
"""

from __future__ import annotations

import sys

from log.given_logs import NOW_MS, SMALL, after_crash, fill, open_log


def main(path: str, leader_epoch: int) -> None:
    log = open_log(path, SMALL.replace(internal_segment_bytes=20_000), checkpoints=after_crash())
    print(f"loaded {log.log_end_offset}", flush=True)
    count = 0
    while True:
        fill(log, 1, leader_epoch=leader_epoch, size=50 + count * 37 % 900)
        print(f"appended {log.log_end_offset}", flush=True)
        count += 1
        if count % 50 == 0:
            log.flush(NOW_MS)
            print(f"flushed {log.recovery_point}", flush=True)
        if count % 400 == 0:
            log.update_high_watermark(log.log_end_offset)
            log.delete_records(log.log_end_offset - 300)
            log.enforce_retention(NOW_MS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
