"""The providers' published types, as the tests of the conversions have them."""

from __future__ import annotations

from tests.host.models.conftest import published

__all__ = ["published"]
