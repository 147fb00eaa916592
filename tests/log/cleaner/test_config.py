from __future__ import annotations

import pytest

from odradek.common.config import from_properties
from odradek.common.errors import ConfigError
from odradek.log.cleaner.config import CleanerConfig


def test_defaults_are_kafkas() -> None:
    config = CleanerConfig()

    assert config.runs
    assert config.log_cleaner_dedupe_buffer_size == 128 * 1024 * 1024
    assert config.log_cleaner_io_buffer_size == 512 * 1024
    assert config.log_cleaner_io_buffer_load_factor == 0.9
    assert config.log_cleaner_backoff_ms == 15_000


def test_memory_and_rate_are_shared_by_the_threads() -> None:
    config = from_properties(
        CleanerConfig, {"log.cleaner.threads": "4", "log.cleaner.io.max.bytes.per.second": "8000000"}
    )

    assert config.dedupe_bytes_per_thread == 32 * 1024 * 1024
    assert config.io_bytes_per_thread == 64 * 1024
    assert config.bytes_per_second_per_thread == 2_000_000


@pytest.mark.parametrize(
    "settings",
    [
        {"log.cleaner.dedupe.buffer.size": "1048575"},
        {"log.cleaner.dedupe.buffer.size": "2097151", "log.cleaner.threads": "2"},
        {"log.cleaner.io.buffer.load.factor": "0"},
        {"log.cleaner.io.buffer.load.factor": "1.1"},
        {"log.cleaner.threads": "-1"},
    ],
)
def test_impossible_settings_are_refused_by_name(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        from_properties(CleanerConfig, settings)


@pytest.mark.parametrize("settings", [{"log.cleaner.enable": "false"}, {"log.cleaner.threads": "0"}])
def test_the_cleaner_can_be_off(settings: dict[str, str]) -> None:
    assert not from_properties(CleanerConfig, settings | {"log.cleaner.dedupe.buffer.size": "0"}).runs
