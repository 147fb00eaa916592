from __future__ import annotations

import pytest
from hypothesis import settings

from log.log_machine import LogMachine

TestLogAgainstModel = LogMachine.TestCase
TestLogAgainstModel.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


class _LongMachine(LogMachine):
    """The same for longer."""


@pytest.mark.slow
class TestLogAgainstModelForLonger(_LongMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
