"""Every comparison with Apache Kafka in one run on one pair of warm brokers: Markdown tables, plots, figures.

    python bench/broker/run.py [--rounds 3] [--quick] [--report]

`--report` prints and draws what was measured last. Alone on a quiet machine three rounds take half an hour,
five 47 minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker import connections, latency, memory, shipped, startup, throughput
from broker.run_setup import main

PARTS = (shipped, throughput, latency, connections, startup, memory)

if __name__ == "__main__":
    main(*(part.PART for part in PARTS))
