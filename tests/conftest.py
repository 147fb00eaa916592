"""Settings for every test: hypothesis without deadlines, since a busy machine is no fault of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("odradek", deadline=None)
settings.load_profile("odradek")
