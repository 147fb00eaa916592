"""`odradek`, whose pipelines run with fake_driver.py instead of Spark."""

from __future__ import annotations

from odradek.cli.main import main
from odradek.spark.pipeline.running import driver_process, preflight

if __name__ == "__main__":
    driver_process._MODULE = "spark.pipeline.running.fake_driver"
    preflight.check_machine = lambda: None
    main()
