"""Nothing is remembered of servers from one test to the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman.client import opening


@pytest.fixture(autouse=True)
def no_verdicts() -> Iterator[None]:
    opening.forget(None)
    yield
    opening.forget(None)
