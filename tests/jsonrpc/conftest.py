"""Property tests here run the same examples everywhere, and take the time that a busy machine needs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")
